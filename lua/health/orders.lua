#!lua
-- @name health/orders
-- @since 0.1.0
-- @summary Gives the worker with the role every order, and notes that it has begun with them.
-- @keys 1 orders hash 1day as in health/order
-- @args 1 fence count of the role's term, from 1
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, then for each: scope, ordered at, begun at}
-- @returns {0, 'stale', now_ms} a newer term has begun
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(orders)
-- @slot {status}
-- What another term began keeps its time: its successor leaves out what was checked since then.
--@include lib/args.lua
--@include lib/clock.lua

local ORDER = '^(%d+) (%d+) (%d+)$'
local KEEP_MS, APART = 86400000, 61 -- =

local fence = whole(1, 1)
if #KEYS ~= 1 or #ARGV ~= 2 then
  bad('one key, a fence, and the time')
end
local now, flat = clock_ms(whole(2, 0)), call('HGETALL', KEYS[1])
local reply, sets = { 1, OK, now }, {}
for at = 1, #flat, 2 do
  if string.byte(flat[at]) ~= APART then
    local ordered, begun, by = string.match(flat[at + 1], ORDER)
    if not ordered then
      unreadable(1)
    end
    if by + 0 > fence then
      return { 0, STALE, now }
    end
    begun = begun + 0 > 0 and begun + 0 or now
    sets[#sets + 1] = { flat[at], string.format('%s %d %d', ordered, begun, fence) }
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = flat[at], ordered + 0, begun
  end
end
for _, one in ipairs(sets) do
  call('HSET', KEYS[1], one[1], one[2])
end
if sets[1] then
  call('PEXPIRE', KEYS[1], KEEP_MS)
end
return reply
