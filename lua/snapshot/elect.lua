#!lua
-- @name snapshot/elect
-- @since 0.1.0
-- @summary Takes, keeps or gives up a role that one worker of the cluster has at a time.
-- @keys 1 lead hash 1day owner, until (ms) and fence of the role's term
-- @args 1 owner text the worker that asks
-- @args 2 term ms how long it has the role unless it asks again; at most a minute, 0 gives it up
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', fence, until_ms} a new term; {2, 'ok', fence, until_ms} its term goes on
-- @returns {0, 'held', fence, ms left} another has it
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes, within a term
-- @complexity O(1)
-- @slot {role}
-- A fence is greater than all before it, also when the key was lost: it is at least the time at which
-- its term began. So a key that nobody asked for within a day may go.
--@include lib/args.lua
--@include lib/clock.lua

local TERM_MAX_MS = 60000
local KEEP_MS = 86400000

local owner, term = ARGV[1], whole(2, 0)
if #KEYS ~= 1 or #ARGV ~= 3 or owner == '' or term > TERM_MAX_MS then
  bad('one key and three arguments; a term is at most a minute')
end
local now = clock_ms(whole(3, 0))
local values = call('HMGET', KEYS[1], 'owner', 'until', 'fence')
local left, fence = stored(values[2], 1) - now, stored(values[3], 1)
local is_held = left > 0 and left <= TERM_MAX_MS -- a longer one is from before the clock stepped back
local is_mine = is_held and values[1] == owner
if is_held and not is_mine then
  return { 0, HELD, fence, left }
end
if not is_mine then
  fence = math.max(fence + 1, now)
end
call('HSET', KEYS[1], 'owner', owner, 'until', string.format('%d', now + term),
  'fence', string.format('%d', fence))
call('PEXPIRE', KEYS[1], KEEP_MS)
return { is_mine and 2 or 1, OK, fence, now + term }
