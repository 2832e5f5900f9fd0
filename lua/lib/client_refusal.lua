-- The refusal of a client whose gate stays closed longest; inside client/hold.
--@include lib/wait.lua

local function refuse(gate_code, ms)
  if ms > wait then
    gate, wait = gate_code, ms
  end
end
if tpm == 0 or (tpm > 0 and estimate > tpm) then
  gate, wait = TOO_LARGE, 0
else
  if rpm >= 0 and rs_new > rpm then
    refuse(RPM, ring_wait(key, 's', SECOND_FIELDS, SECONDS, SECOND_MS, s + 0, false, rs_new - rpm, now, sets or {}))
  end
  if tpm >= 0 and ts_new > tpm then
    refuse(TPM, ring_wait(key, 's', SECOND_FIELDS, SECONDS, SECOND_MS, s + 0, true, ts_new - tpm, now, sets or {}))
  end
  if concurrency >= 0 and count > concurrency then
    refuse(CONCURRENCY, CONCURRENCY_RETRY_MS)
  end
  if monthly_tokens >= 0 and used_new > monthly_tokens then
    refuse(MONTHLY_TOKENS, ends - now)
  end
  if monthly_usd >= 0 and spent_new > monthly_usd then
    refuse(MONTHLY_USD, ends - now)
  end
end
