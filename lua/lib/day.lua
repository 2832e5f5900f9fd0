-- Calendar days, which the caller computes because scripts know no time zones. Field `d` of a window:
-- '<yyyymmdd> <end> <requests> <tokens>'; end (ms) is the first instant after the day. Day id 0 means
-- a rolling day, kept in the ring of hours instead.
local DAY_MAX_MS = 93600000 -- 26 h: no zone has a longer day, so a later end is a wrong clock

-- Whether the caller's day cannot contain `now`.
local function day_is_stale(id, end_ms, now)
  return id > 0 and (end_ms <= now or end_ms > now + DAY_MAX_MS)
end

local function day_read(text)
  local d, de, r, t = string.match(text, '(%S+) (%S+) (%S+) (%S+)')
  return { d = tonumber(d), de = tonumber(de), r = tonumber(r), t = tonumber(t) }
end

local function day_write(d, de, r, t)
  return string.format('%d %d %d %d', d, de, r, t)
end

-- The day of a window from its field. The stored day rules until it has ended, then the larger id:
-- neither a slow nor a fast clock of a caller can start a day twice.
local function day_of(text, id, end_ms, now)
  local day = text and day_read(text)
  if not day or (now >= day.de and id > day.d) then
    return { d = id, de = end_ms, r = 0, t = 0 }
  end
  if now >= day.de then
    day.de = end_ms
  end
  return day
end
