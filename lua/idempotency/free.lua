#!lua
-- @name idempotency/free
-- @since 0.1.0
-- @summary Gives an idempotency key back: its call ended without an answer that may be kept.
-- @keys 1 record hash argument token and why stay for a minute
-- @keys 2 feed list 10min ends
-- @args 1 token count as it was given
-- @args 2 why text one word, for whoever looks
-- @returns {1, 'ok'} free; {2, 'ok'} freed by this call before; {0, 'stale'} it is not this call's
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by token
-- @complexity O(pieces)
-- @slot {digest}
--@include lib/args.lua

local AFTER_MS = 60000

local token, why = whole(1, 1), ARGV[2]
if #KEYS ~= 2 or #ARGV ~= 2 or not string.match(why, '^[a-z_]+$') then
  bad('two keys and two arguments')
end
local found = call('HMGET', KEYS[1], 'token', 'state')
if stored(found[1], 1) ~= token or found[2] == 'kept' then
  return { 0, STALE }
end
if found[2] ~= 'held' then
  return { 2, OK }
end
call('DEL', KEYS[1], KEYS[2])
call('HSET', KEYS[1], 'token', string.format('%d', token), 'state', 'free', 'why', why)
call('PEXPIRE', KEYS[1], AFTER_MS)
return { 1, OK }
