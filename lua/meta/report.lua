#!lua
-- @name meta/report
-- @since 0.1.0
-- @summary Says what a worker is and does, and tells it whether operators want it drained.
-- @keys 1 states hash 80min worker id -> what it said last, JSON
-- @keys 2 drains hash 80min worker id -> since when it is to be drained (ms)
-- @keys 3 workers zset 80min worker id -> its last beat (ms)
-- @args 1 worker text without spaces
-- @args 2 state text JSON
-- @returns {1, 'ok', drained since} in ms since the epoch, 0 for not drained
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(1), O(workers) when some have gone
-- @slot {mem}
-- Who is not listed any more is forgotten here: nobody else knows that it has gone.
--@include lib/args.lua

local KEEP_MS = 4800000

local worker, state = ARGV[1], ARGV[2]
if #KEYS ~= 3 or #ARGV ~= 2 or not string.match(worker, '^%S+$') or state == '' then
  bad('three keys and two arguments; a worker id has no spaces')
end
local since = stored(call('HGET', KEYS[2], worker), 2)

call('HSET', KEYS[1], worker, state)
call('PEXPIRE', KEYS[1], KEEP_MS)
if since > 0 then
  call('PEXPIRE', KEYS[2], KEEP_MS)
end
if call('HLEN', KEYS[1]) > call('ZCARD', KEYS[3]) then
  for _, name in ipairs(call('HKEYS', KEYS[1])) do
    if name ~= worker and not call('ZSCORE', KEYS[3], name) then
      call('HDEL', KEYS[1], name)
      call('HDEL', KEYS[2], name)
    end
  end
end
return { 1, OK, since }
