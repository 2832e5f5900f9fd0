-- One window: a hash with the minute ring, the day (ring of hours, or a calendar day) and `i`, the
-- leases in flight at the last write. The truth about what is in flight is the sorted set beside
-- it (lease id -> expiry), since only that can tell which have expired.
--@include lib/ring_walk.lua
--@include lib/day.lua

local WINDOW_KEEP_MS = 97200000 -- 27 h after the last write: longer than any day

-- The window as of `now`, pruned. `id` and `end_ms` are the caller's day, 0 for a rolling one.
local function window_load(key, id, end_ms, now)
  local second, hour = floor(now / MINUTE.unit), floor(now / HOURS.unit)
  local s, h = second % MINUTE.size, hour % HOURS.size
  local w = { key = key }
  local values
  if id == 0 then
    values = call('HMGET', key, 'b', 'rs', 'ts', 'r' .. s, 't' .. s,
      'hb', 'hrs', 'hts', 'hr' .. h, 'ht' .. h)
    w.hours = ring_of(HOURS, hour, values, 6)
    ring_advance(key, w.hours)
    w.day_requests, w.day_tokens = w.hours.rs, w.hours.ts
  else
    values = call('HMGET', key, 'b', 'rs', 'ts', 'r' .. s, 't' .. s, 'd', 'de', 'dr', 'dt')
    w.day = day_of(values, 6, id, end_ms, now)
    w.day_requests, w.day_tokens = w.day.r, w.day.t
  end
  w.minute = ring_of(MINUTE, second, values, 1)
  ring_advance(key, w.minute)
  return w
end

-- Adds to minute and day and sets what is in flight: one write. What changes only when a bucket or a
-- day begins is written then, and so is the TTL; a new key begins all of them.
local function window_add(w, requests, tokens, in_flight)
  local key, m, h, d = w.key, w.minute, w.hours, w.day
  local s = m.b % MINUTE.size
  m.rs, m.ts = m.rs + requests, m.ts + tokens
  if h then
    local o = h.b % HOURS.size
    call('HSET', key, 'i', in_flight, 'rs', m.rs, 'ts', m.ts, 'r' .. s, m.r + requests,
      't' .. s, m.t + tokens, 'hrs', h.rs + requests, 'hts', h.ts + tokens,
      'hr' .. o, h.r + requests, 'ht' .. o, h.t + tokens)
  else
    call('HSET', key, 'i', in_flight, 'rs', m.rs, 'ts', m.ts, 'r' .. s, m.r + requests,
      't' .. s, m.t + tokens, 'dr', d.r + requests, 'dt', d.t + tokens)
  end
  if h and h.moved then
    call('HSET', key, 'hb', h.b)
  elseif d and d.moved then
    call('HSET', key, 'd', d.d, 'de', d.de)
  end
  if m.moved then
    call('HSET', key, 'b', m.b)
    call('PEXPIRE', key, WINDOW_KEEP_MS)
  end
end
