#!lua
-- @name meta/drain
-- @since 0.1.0
-- @summary Has workers take no more part, or take part again, because an operator says so; tells them.
-- @keys 1 drains hash 80min worker id -> since when it is to be drained (ms)
-- @keys 2 workers zset 80min worker id -> its last beat (ms)
-- @args 1 drained count 1 to drain them, 0 to end that
-- @args 2.. worker text without spaces; none stands for all that are listed
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, worker, ...} those that this changed
-- @returns {0, 'unknown', now_ms, worker, ...} those that are not listed; nothing was done
-- @errors GW_BADARG
-- @idempotent yes
-- @complexity O(workers)
-- @slot {mem}
-- A life of a worker has its own id: whoever starts anew is not drained.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local UNKNOWN = 'unknown'
local KEEP_MS = 4800000
local WORKERS_MAX = 1000

local drained, last = whole(1, 0), #ARGV
if #KEYS ~= 2 or last < 2 or last > WORKERS_MAX or drained > 1 then
  bad('two keys, 0 or 1, workers and the time')
end
for index = 2, last - 1 do
  if not string.match(ARGV[index], '^%S+$') then
    bad('a worker id has no spaces')
  end
end
local now = clock_ms(whole(last, 0))
local named, unknown = {}, {}
for index = 2, last - 1 do
  local list = call('ZSCORE', KEYS[2], ARGV[index]) and named or unknown
  list[#list + 1] = ARGV[index]
end
if #unknown > 0 then
  return { 0, UNKNOWN, now, unpack(unknown) }
end
if last == 2 then
  named = call('ZRANGE', KEYS[2], '0', '-1')
end

local changed = {}
for _, worker in ipairs(named) do
  local done
  if drained == 1 then
    done = call('HSETNX', KEYS[1], worker, string.format('%d', now))
  else
    done = call('HDEL', KEYS[1], worker)
  end
  if done == 1 then
    changed[#changed + 1] = worker
  end
end
if #changed > 0 then
  call('PEXPIRE', KEYS[1], KEEP_MS)
  tell(string.format('drain %d', now))
end
return { 1, OK, now, unpack(changed) }
