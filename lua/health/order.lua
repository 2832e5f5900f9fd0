#!lua
-- @name health/order
-- @since 0.1.0
-- @summary Orders a check of some keys out of turn, because an operator says so.
-- @keys 1 orders hash 1day what is to be checked -> ordered at, begun at (0: not yet), fence of who began
-- @args 1 scope text a word: * for all keys, a provider, or a key; never begins with =
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', ordered at} the order stands
-- @returns {2, 'ok', ordered at} it stood already, and nobody has begun
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes, until somebody begins
-- @complexity O(1)
-- @slot {status}
-- What is ordered anew while it is done is done again: a key may have been mended meanwhile.
-- The rules are those of `core/limits/check_order.py`.
--@include lib/args.lua
--@include lib/clock.lua

local ORDER = '^(%d+) (%d+) %d+$'
local KEEP_MS = 86400000

local scope = ARGV[1]
if #KEYS ~= 1 or #ARGV ~= 2 or not string.match(scope, '^[^%s=]%S*$') then
  bad('one key, a word, and the time')
end
local now, text = clock_ms(whole(2, 0)), call('HGET', KEYS[1], scope)
local ordered, begun = string.match(text or '', ORDER)
if text and not ordered then
  unreadable(1)
end
if ordered and begun + 0 == 0 then
  return { 2, OK, ordered + 0 }
end
call('HSET', KEYS[1], scope, string.format('%d 0 0', now))
call('PEXPIRE', KEYS[1], KEEP_MS)
return { 1, OK, now }
