-- Which of a window's closed gates stays closed longest; too_large beats all, since waiting never helps.
--@include lib/wait.lua

local function refusal(key, n, s, day, ends, sets)
  s, day = s + 0, day + 0
  local function refuse(code, ms)
    if ms > wait then
      gate, scope, wait = code, n, ms
    end
  end
  local function day_wait(is_tokens, need)
    if day >= CALENDAR_MIN then
      return ends - now
    end
    return ring_wait(key, 'd', HOUR_FIELDS, HOURS, HOUR_MS, day, is_tokens, need, now, sets)
  end
  if gate == TOO_LARGE then
    return gate, scope, wait
  end
  if tpm == 0 or tpd == 0 or (tpm > 0 and estimate > tpm) or (tpd > 0 and estimate > tpd) then
    return TOO_LARGE, n, 0
  end
  if rpm >= 0 and rs > rpm then
    refuse(RPM, ring_wait(key, 's', SECOND_FIELDS, SECONDS, SECOND_MS, s, false, rs - rpm, now, sets))
  end
  if tpm >= 0 and ts > tpm then
    refuse(TPM, ring_wait(key, 's', SECOND_FIELDS, SECONDS, SECOND_MS, s, true, ts - tpm, now, sets))
  end
  if rpd >= 0 and drs > rpd then
    refuse(RPD, day_wait(false, drs - rpd))
  end
  if tpd >= 0 and dts > tpd then
    refuse(TPD, day_wait(true, dts - tpd))
  end
  if concurrency >= 0 and count > concurrency then
    refuse(CONCURRENCY, CONCURRENCY_RETRY_MS)
  end
  return gate, scope, wait
end
