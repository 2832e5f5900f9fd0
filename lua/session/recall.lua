#!lua
-- @name session/recall
-- @since 0.1.0
-- @summary Tells which route was bound last, and gives the request its place among those that may bind.
-- @keys 1 bound hash argument what is remembered of a session, a run or a combo
-- @args 1 ttl ms how long it is remembered from now on
-- @returns {1, 'ok', turn, route} the route empty when none is bound; turns count from 1
-- @errors GW_BADARG
-- @idempotent no: a repeated call skips a turn, which nobody misses
-- @complexity O(1)
-- @slot {combo}
--@include lib/args.lua

local ttl = whole(1, 1)
if #KEYS ~= 1 or #ARGV ~= 1 then
  bad('one key and one argument')
end
local turn = call('HINCRBY', KEYS[1], 'turn', 1)
call('PEXPIRE', KEYS[1], ttl)
return { 1, OK, turn, call('HGET', KEYS[1], 'route') or '' }
