#!lua
-- @name admission/reap
-- @since 0.1.0
-- @summary Frees the concurrency slots that leases of dead workers hold in one window.
-- @keys 1 lh hash 80min lease id -> record
-- @keys 2 window hash 27h counters of a window
-- @keys 3 flights zset 80min leases in flight in that window
-- @args 1 valid_until ms after this the workers may have come back: nothing is done
-- @args 2 from count where to go on: 0, then what the last call answered
-- @args 3.. worker text a dead worker
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', leases freed, where to go on or 0 at the end}
-- @returns {0, 'stale', 0, 0} valid_until has passed
-- @errors GW_BADARG
-- @idempotent by state of the lease
-- @complexity O(log leases + 100)
-- @slot {provider.account}
-- Request, tokens and record stay as they are, so the lease expires, or is settled, as if its worker
-- lived: lib/flights.lua.
--@include lib/codes.lua
--@include lib/clock.lua
--@include lib/flights.lua
--@include lib/record.lua

local LOOKED_AT_MAX = 100

local lh, window, flights = KEYS[1], KEYS[2], KEYS[3]
local valid_until, from = whole(1, 0), whole(2, 0)
if #KEYS ~= 3 or #ARGV < 4 then
  bad('three keys, and at least one worker')
end
local is_dead = {}
for at = 3, #ARGV - 1 do
  is_dead[ARGV[at]] = true
end
local now = clock_ms(whole(#ARGV, 0))
if now > valid_until then
  return { 0, STALE, 0, 0 }
end

local ids = call('ZRANGEBYSCORE', flights, string.format('(%d', now), '+inf', 'LIMIT',
  string.format('%d', from), LOOKED_AT_MAX)
local records, freed = ids[1] and call('HMGET', lh, unpack(ids)) or {}, 0

-- Marks the lease freed in this window; its member goes below zero.
local function free_lease(id, text)
  local lease = lease_read(text)
  for _, place in ipairs(lease.places) do
    if place.name == window and place.state == 'R' then
      place.state, freed = 'F', freed + 1
      call('HSET', lh, id, lease_write(lease))
      call('ZADD', flights, 'XX', '-' .. lease.expiry, id)
    end
  end
end

for at, id in ipairs(ids) do
  local text = records[at]
  if text and is_dead[string.match(text, ' worker=(%S+)')] then
    free_lease(id, text)
  end
end
local held = freed > 0 and call('HGET', window, 'i')
if held then
  local count, quiet = flights_known(held, now)
  call('HSET', window, 'i', count and string.format('%d %d', math.max(count - freed, 0), quiet)
    or '0 0') -- the next call looks, also when the clock steps back before it
end
return { 1, OK, freed, #ids == LOOKED_AT_MAX and from + #ids - freed or 0 }
