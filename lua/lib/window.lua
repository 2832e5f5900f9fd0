-- One window: a hash with the minute ring, the day (ring of hours, or a calendar day) and `i`, the
-- leases in flight at the last write. The truth about what is in flight is the sorted set beside
-- it (lease id -> expiry), since only that can tell which have expired.
--@include lib/ring_walk.lua
--@include lib/day.lua

local WINDOW_KEEP_MS = 97200000 -- 27 h after the last write: longer than any day

-- The window as of `now`, pruned. `id` and `end_ms` are the caller's day, 0 for a rolling one.
local function window_load(key, id, end_ms, now)
  local s = math.floor(now / MINUTE.unit) % MINUTE.size
  local h = math.floor(now / HOURS.unit) % HOURS.size
  local w = { key = key }
  local values
  if id == 0 then
    values = redis.call('HMGET', key, 'b', 'rs', 'ts', 'r' .. s, 't' .. s,
      'hb', 'hrs', 'hts', 'hr' .. h, 'ht' .. h)
    w.hours = ring_of(HOURS, now, values, 6)
    ring_advance(key, w.hours)
    w.day_requests, w.day_tokens = w.hours.rs, w.hours.ts
  else
    values = redis.call('HMGET', key, 'b', 'rs', 'ts', 'r' .. s, 't' .. s, 'd', 'de', 'dr', 'dt')
    w.day = day_of(values, 6, id, end_ms, now)
    w.day_requests, w.day_tokens = w.day.r, w.day.t
  end
  w.minute = ring_of(MINUTE, now, values, 1)
  ring_advance(key, w.minute)
  return w
end

-- Adds to minute and day and sets what is in flight: one write. The TTL is renewed once a second, and
-- always when the key is new, because then the ring has moved, too.
local function window_add(w, requests, tokens, in_flight)
  local m, h, d = w.minute, w.hours, w.day
  local s = m.b % MINUTE.size
  m.rs, m.ts = m.rs + requests, m.ts + tokens
  if h then
    local o = h.b % HOURS.size
    redis.call('HSET', w.key, 'i', in_flight, 'b', m.b, 'rs', m.rs, 'ts', m.ts,
      'r' .. s, m.r + requests, 't' .. s, m.t + tokens, 'hb', h.b, 'hrs', h.rs + requests,
      'hts', h.ts + tokens, 'hr' .. o, h.r + requests, 'ht' .. o, h.t + tokens)
  else
    redis.call('HSET', w.key, 'i', in_flight, 'b', m.b, 'rs', m.rs, 'ts', m.ts,
      'r' .. s, m.r + requests, 't' .. s, m.t + tokens,
      'd', d.d, 'de', d.de, 'dr', d.r + requests, 'dt', d.t + tokens)
  end
  if m.moved then
    redis.call('PEXPIRE', w.key, WINDOW_KEEP_MS)
  end
end
