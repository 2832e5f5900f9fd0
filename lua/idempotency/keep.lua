#!lua
-- @name idempotency/keep
-- @since 0.1.0
-- @summary Keeps the answer of a call for whoever repeats it with the same idempotency key.
-- @keys 1 record hash argument body, token, state and the sealed answer
-- @keys 2 feed list 10min ends: the answer is in the record
-- @args 1 token count as it was given
-- @args 2 ttl ms how long it is kept
-- @args 3 answer text sealed
-- @returns {1, 'ok'} kept; {2, 'ok'} kept by this call before; {0, 'stale'} the key is another call's
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by token
-- @complexity O(size of the answer)
-- @slot {digest}
--@include lib/args.lua

local token, ttl, answer = whole(1, 1), whole(2, 1), ARGV[3]
if #KEYS ~= 2 or #ARGV ~= 3 or answer == '' then
  bad('two keys and three arguments')
end
local found = call('HMGET', KEYS[1], 'token', 'state')
if stored(found[1], 1) ~= token or (found[2] ~= 'held' and found[2] ~= 'kept') then
  return { 0, STALE }
end
if found[2] == 'kept' then
  return { 2, OK }
end
call('HSET', KEYS[1], 'state', 'kept', 'answer', answer)
call('HDEL', KEYS[1], 'until', 'owner', 'followed')
call('PEXPIRE', KEYS[1], ttl)
call('DEL', KEYS[2])
return { 1, OK }
