#!lua
-- @name session/bind
-- @since 0.1.0
-- @summary Binds a session, a run or a combo to the route that answered, unless a later request has.
-- @keys 1 bound hash argument what is remembered, see `recall`
-- @args 1 route text what answered
-- @args 2 turn count of the request, as `recall` gave it; 0 for one that did not look
-- @args 3 ttl ms how long it is remembered from now on
-- @returns {1, 'ok'} bound; {0, 'stale'} a later request was answered before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes, but for turn 0, which only counts on
-- @complexity O(1)
-- @slot {combo}
-- A record that was forgotten in the meantime begins anew: its turns are those of the request. Who did
-- not look, since there could be nothing to find, counts as the latest.
--@include lib/args.lua

local route, turn, ttl = ARGV[1], whole(2, 0), whole(3, 1)
if #KEYS ~= 1 or #ARGV ~= 3 or route == '' then
  bad('one key and three arguments')
end
local bound = call('HMGET', KEYS[1], 'turn', 'by')
local last = stored(bound[1], 1)
turn = turn > 0 and turn or last + 1
if stored(bound[2], 1) - turn > 0 then
  return { 0, STALE }
end
call('HSET', KEYS[1], 'route', route, 'by', string.format('%d', turn), 'turn',
  string.format('%d', last > turn and last or turn))
call('PEXPIRE', KEYS[1], ttl)
return { 1, OK }
