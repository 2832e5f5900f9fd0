-- One window: a hash with the minute ring, the day (ring of hours, or a calendar day) and what is in
-- flight. Reading it is one call in the frequent case, and writing it is one.
--@include lib/ring_walk.lua
--@include lib/day.lua
--@include lib/flights.lua

local WINDOW_KEEP_MS = 97200000 -- 27 h after the last write, less one lap: longer than any day

-- What is stored for a second and an hour (none: for the calendar day): in flight, head and slot of
-- the minute, then head and slot of the hours, or the day.
local function window_get(key, second, hour)
  local s = 'm' .. second % MINUTE.size
  if hour then
    return call('HMGET', key, 'i', 'm', s, 'h', 'h' .. hour % HOURS.size)
  end
  return call('HMGET', key, 'i', 'm', s, 'd')
end

-- The same for the present; day id 0 stands for a rolling day.
local function window_now(key, id, now)
  return window_get(key, math.floor(now / MINUTE.unit), id == 0 and math.floor(now / HOURS.unit))
end

-- The window as of `now` from these values. `id` and `end_ms` are the caller's day.
local function window_load(key, id, end_ms, now, values)
  local w = { key = key }
  if id == 0 then
    w.hours = ring_load(key, HOURS, math.floor(now / HOURS.unit), values[4], values[5])
    w.day_requests, w.day_tokens = w.hours.rs, w.hours.ts
  else
    w.day = day_of(values[4], id, end_ms, now)
    w.day_requests, w.day_tokens = w.day.r, w.day.t
  end
  w.minute = ring_load(key, MINUTE, math.floor(now / MINUTE.unit), values[2], values[3])
  return w
end

-- Adds to minute and day and sets what is in flight: one write. The TTL is renewed once a lap.
local function window_add(w, requests, tokens, in_flight)
  local key, m, h, d = w.key, w.minute, w.hours, w.day
  m.rs, m.ts = m.rs + requests, m.ts + tokens
  local head, slot = triple_write(m.b, m.rs, m.ts), triple_write(m.b, m.r + requests, m.t + tokens)
  local s = 'm' .. m.b % MINUTE.size
  if h then
    call('HSET', key, 'i', in_flight, 'm', head, s, slot,
      'h', triple_write(h.b, h.rs + requests, h.ts + tokens),
      'h' .. h.b % HOURS.size, triple_write(h.b, h.r + requests, h.t + tokens))
  else
    call('HSET', key, 'i', in_flight, 'm', head, s, slot,
      'd', day_write(d.d, d.de, d.r + requests, d.t + tokens))
  end
  if m.lap then
    call('PEXPIRE', key, WINDOW_KEEP_MS)
  end
end
