#!lua
-- @name snapshot/rank
-- @since 0.1.0
-- @summary Writes down how fast routes were, if the writer still has the role.
-- @keys 1 lead hash 1day owner, until (ms) and fence of the writer's term
-- @keys 2 ranks hash none route -> its speed rank; written_at (ms), by the name _written_at
-- @args 1 owner text the writer
-- @args 2 fence count of its term
-- @args 3.. route text, then its rank: 1 to 10, or 0 to forget it
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', ranks that are others than before, now_ms}
-- @returns {0, 'stale', 0, now_ms} the writer's term is over, or another has begun: nothing done
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes, but for written_at
-- @complexity O(routes)
-- @slot {snap}
-- Without a TTL: it is to outlive the statistics it was made of.
--@include lib/args.lua
--@include lib/clock.lua

local RANK_MAX = 10

local fence = whole(2, 1)
if #KEYS ~= 2 or #ARGV < 5 or #ARGV % 2 == 0 or ARGV[1] == '' then
  bad('two keys, an owner, a fence, pairs and the time')
end
local now = clock_ms(whole(#ARGV, 0))
for at = 3, #ARGV - 1, 2 do
  if string.sub(ARGV[at], 1, 1) == '_' or not string.match(ARGV[at], '^%S+$')
    or whole(at + 1, 0) > RANK_MAX then
    bad('a route is empty, has spaces or is ours, or a rank is above ' .. RANK_MAX)
  end
end
local lead = call('HMGET', KEYS[1], 'owner', 'until', 'fence')
if lead[1] ~= ARGV[1] or stored(lead[3], 1) ~= fence or stored(lead[2], 1) <= now then
  return { 0, STALE, 0, now }
end
local changed = 0
for at = 3, #ARGV - 1, 2 do
  local route, rank = ARGV[at], string.format('%d', whole(at + 1, 0))
  if rank == '0' then
    changed = changed + call('HDEL', KEYS[2], route)
  elseif call('HGET', KEYS[2], route) ~= rank then
    call('HSET', KEYS[2], route, rank)
    changed = changed + 1
  end
end
call('HSET', KEYS[2], '_written_at', string.format('%d', now))
return { 1, OK, changed, now }
