-- Telling what bars a target or a key when that has changed; inside lib/health_settle.lua.
--@include lib/tell.lua

-- What bars it now, and until when.
local function bar_of(record)
  local code, ends = 'well', 0
  if is_resting(record) then
    code, ends = COOLDOWN, record.rest_until
  end
  if record.breaker == 'open' and record.opened_at <= now and record['until'] > math.max(now, ends) then
    code, ends = BREAKER_OPEN, record['until']
  end
  return code, ends
end

local function tell_bar(key, record, code_before, ends_before, breaker_before)
  local code, ends = bar_of(record)
  -- The end of a trial bars nobody, but others may remember that there was one.
  if code ~= code_before or ends ~= ends_before or record.breaker ~= breaker_before then
    tell(format('health %s %s %d %d', key, code, math.max(ends - now, 0), now))
  end
end
