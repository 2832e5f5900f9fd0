#!lua
-- @name cache/stats
-- @since 0.1.0
-- @summary Tells how much is stored and what it was good for.
-- @keys 1 records hash 40days member -> size, client, model; sums
-- @keys 2 ends zset 40days member -> when it ends (ms)
-- @keys 3 doomed zset 40days members to be deleted -> since when (ms)
-- @args 1 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', entries, doomed, sums ...} bytes, hits, misses, saved_prompt, saved_completion, stored,
-- @returns evicted, expired, removed
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent reads only
-- @complexity O(1)
-- @slot {cache}
--@include lib/args.lua
--@include lib/clock.lua

if #KEYS ~= 3 or #ARGV ~= 1 then
  bad('three keys and an argument')
end
local now = clock_ms(whole(1, 0))
local sums = call('HMGET', KEYS[1], 'bytes', 'hits', 'misses', 'saved_prompt', 'saved_completion', 'stored',
  'evicted', 'expired', 'removed')
for at = 1, 9 do
  sums[at] = stored(sums[at], 1)
end
local entries = call('ZCOUNT', KEYS[2], string.format('(%d', now), '+inf')
return { 1, OK, entries, call('ZCARD', KEYS[3]), unpack(sums) }
