-- Holds: leases of a client instead of a target. Its hash has the minute ring (`m`), what is in
-- flight (`i`) and the month; its records stand in a hash of its own, kept as lib/lease.lua keeps
-- leases and written as lib/record.lua writes them, so that admission/reap frees the slots of dead
-- workers here, too:
--   R est=1200 prompt=200 exp=1795000000000 worker=w1 <counters>@<second>@m<yyyymm>@R usd@450@k40@R
-- usd: micro-USD reserved, and after k what of them stays counted when the hold expires.
--@include lib/lease.lua
--@include lib/record.lua
--@include lib/correct.lua
--@include lib/month.lua

local CLIENT_KEEP_MS = 2764800000 -- 32 days: longer than any month

-- What is stored for a second: in flight, head and slot of the minute, month.
local function client_get(key, second)
  return call('HMGET', key, 'i', 'm', 'm' .. second % MINUTE.size, 'month')
end

-- Adds to the present minute `m` and `month` and sets what is in flight: one write.
local function client_add(key, m, month, requests, tokens, cost, in_flight)
  m.rs, m.ts = m.rs + requests, m.ts + tokens
  month.tokens, month.cost = month.tokens + tokens, month.cost + cost
  call('HSET', key, 'i', in_flight, 'm', triple_write(m.b, m.rs, m.ts),
    'm' .. m.b % MINUTE.size, triple_write(m.b, m.r + requests, m.t + tokens),
    'month', month_write(month.id, month.ends, month.tokens, month.cost))
  if m.lap then
    call('PEXPIRE', key, CLIENT_KEEP_MS)
  end
end

-- Adds (all may be negative) where `place` counted, never below zero; a month that is over stays as
-- it was. `values` is from client_get; `sets` holds other fields to write.
local function hold_correct(place, values, requests, tokens, cost, sets)
  local key = place.name
  if not values[2] then
    return
  end
  ring_correct(key, MINUTE, values[2], values[3], place.bucket, requests, tokens, sets)
  local month = values[4] and month_read(values[4])
  if month and month.id == place.day then
    sets[#sets + 1], sets[#sets + 2] = 'month', month_write(month.id, month.ends,
      least_zero(month.tokens + tokens), least_zero(month.cost + cost))
  end
  call('HSET', key, unpack(sets))
end
