#!lua
-- @name idempotency/go_on
-- @since 0.1.0
-- @summary Says that a call with an idempotency key lives, and hands pieces of its answer to who waits.
-- @keys 1 record hash argument body, token, owner, until (ms), state
-- @keys 2 feed list 10min sealed pieces of the answer
-- @args 1 token count as it was given
-- @args 2 lease ms how long the key is held from now; at most a minute
-- @args 3 at count pieces that stand in the feed already
-- @args 4.. piece text sealed; none or a few
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', followed} 1 when somebody waits for pieces, else 0; {2, 'ok', followed} the pieces stand there
-- @returns {0, 'stale'} the key is not this call's any more; {0, 'none'}: pieces before these were lost
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by token and at
-- @complexity O(pieces)
-- @slot {digest}
--@include lib/args.lua
--@include lib/clock.lua

local LEASE_MAX_MS = 60000
local AFTER_MS = 540000

local token, lease, at = whole(1, 1), whole(2, 1), whole(3, 0)
if #KEYS ~= 2 or #ARGV < 4 or lease > LEASE_MAX_MS then
  bad('two keys and at least four arguments; a lease is at most a minute')
end
local now = clock_ms(whole(#ARGV, 0))
local found = call('HMGET', KEYS[1], 'token', 'state', 'followed')
if stored(found[1], 1) ~= token or found[2] ~= 'held' then
  return { 0, STALE }
end
local count = #ARGV - 4
local length = count > 0 and call('LLEN', KEYS[2]) or at
if length < at then
  return { 0, NONE }
end
call('HSET', KEYS[1], 'until', string.format('%d', now + lease))
call('PEXPIRE', KEYS[1], lease + AFTER_MS)
local followed = found[3] and 1 or 0
if count == 0 then
  return { 1, OK, followed }
end
if length == at then
  call('RPUSH', KEYS[2], unpack(ARGV, 4, #ARGV - 1))
end
call('PEXPIRE', KEYS[2], lease + AFTER_MS)
return { length == at and 1 or 2, OK, followed }
