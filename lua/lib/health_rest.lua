-- How a failure and a success change a rest; inside lib/health_settle.lua.
local LADDER_MS = { 120000, 600000, 3600000, 86400000 }
local HITS_KEPT, HIT_MS, REPEAT_MS = 3, 86400000, 3600000

local function is_same_incident(record)
  return outcome.reserved_at <= record.rest_set_at and record.rest_set_at <= now
end

local function is_resting(record)
  return now < record.rest_until and record.rest_until <= now + REST_MAX_MS
end

--@include lib/health_day.lua

local function rest_apply(record)
  local source, wait, climb = outcome.source, outcome.wait, outcome.climb
  local hits, is_same, is_active = {}, is_same_incident(record), is_resting(record)
  for at in string.gmatch(record.hits, '%d+') do
    if math.abs(now - at) < HIT_MS then
      hits[#hits + 1] = at
    end
  end
  if is_same then
    wait = (source == 'heuristic' and is_active) and 0 or wait
  else
    local is_repeated = record.limited_at > 0 and math.abs(now - record.limited_at) < REPEAT_MS
    if (climb == 'day_spent' and is_day_spent()) or (climb == 'repeated' and is_repeated) then
      wait = math.min(LADDER_MS[#hits + 1], outcome.step_cap)
      hits[#hits + 1] = format('%d', now)
    end
    if climb == 'repeated' then
      record.limited_at = now
    end
    record.rest_set_at = now
  end
  local ends = math.max(now + wait, outcome.until_at)
  if now + outcome.stated > ends then
    ends, source = now + outcome.stated, 'authoritative'
  end
  if ends > (is_active and record.rest_until or now) then
    record.rest_until, record.rest_source, record.rest_reason = ends, source, outcome.reason
  end
  record.hits = table.concat(hits, ' ', math.max(1, #hits - HITS_KEPT + 1))
end

-- The ladder starts anew, and a rest that is over is forgotten.
local function rest_succeed(record)
  if is_same_incident(record) then
    return
  end
  record.hits, record.limited_at = '', 0
  if not is_resting(record) then
    record.rest_until, record.rest_source, record.rest_reason = 0, '', ''
  end
end
