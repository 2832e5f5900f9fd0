#!lua
-- @name meta/beat
-- @since 0.1.0
-- @summary Says that a worker lives, forgets who was silent for an hour, and names who is silent now.
-- @keys 1 workers zset 80min worker id -> its last beat (ms)
-- @args 1 worker text without spaces
-- @args 2 silent_after ms silence from which a worker is named
-- @args 3 dead_after ms silence from which a worker does not count as alive
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', workers alive, now_ms, worker, last beat, ...}, at most 50, the longest silent first
-- @errors GW_BADARG
-- @idempotent yes: only the last beat counts
-- @complexity O(log workers + silent)
-- @slot {mem}
--@include lib/args.lua
--@include lib/clock.lua

local NAMED_MAX = 50
local FORGET_MS = 3600000 -- LEASE_MAX_MS: no lease of such a worker can still be in flight
local KEEP_MS = 4800000

local worker, silent_after, dead_after = ARGV[1], whole(2, 1), whole(3, 1)
if #KEYS ~= 1 or #ARGV ~= 4 or not string.match(worker, '^%S+$') then
  bad('one key and four arguments; a worker id has no spaces')
end
local now = clock_ms(whole(4, 0))
local function before(ms)
  return string.format('%d', now - ms)
end

call('ZADD', KEYS[1], before(0), worker)
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', before(FORGET_MS))
call('PEXPIRE', KEYS[1], KEEP_MS)
local alive = call('ZCOUNT', KEYS[1], '(' .. before(dead_after), '+inf')
local silent = call('ZRANGEBYSCORE', KEYS[1], '-inf', before(silent_after), 'WITHSCORES', 'LIMIT',
  '0', NAMED_MAX)
return { 1, OK, alive, now, unpack(silent) }
