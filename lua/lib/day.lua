-- Calendar days, which the caller computes because scripts know no time zones. Fields of a window:
-- d (yyyymmdd), de (ms, first instant after it), dr, dt (requests and tokens of that day). Day id 0
-- means a rolling day, kept in the ring of hours instead.
local DAY_MAX_MS = 93600000 -- 26 h: no zone has a longer day, so a later end is a wrong clock

-- Whether the caller's day cannot contain `now`.
local function day_is_stale(id, end_ms, now)
  return id > 0 and (end_ms <= now or end_ms > now + DAY_MAX_MS)
end

-- The day of a window from its four values d, de, dr, dt. The stored day rules until it has ended,
-- then the larger id: neither a slow nor a fast clock of a caller can start a day twice.
local function day_of(values, at, id, end_ms, now)
  local day = {
    d = tonumber(values[at]),
    de = tonumber(values[at + 1]),
    r = tonumber(values[at + 2] or 0),
    t = tonumber(values[at + 3] or 0),
  }
  if not day.d or (now >= day.de and id > day.d) then
    return { d = id, de = end_ms, r = 0, t = 0, moved = true }
  end
  if now >= day.de then
    day.de, day.moved = end_ms, true
  end
  return day
end
