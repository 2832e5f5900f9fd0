#!lua
-- @name cache/touch
-- @since 0.1.0
-- @summary Books what a worker found lately: when each entry was used last, and sums.
-- @keys 1 index zset 40days member -> last use (ms)
-- @keys 2 records hash 40days member -> size, client, model; sums
-- @args 1 hits count answers that were found
-- @args 2 misses count that were not
-- @args 3 prompt tokens that were not sent, since the answer was there
-- @args 4 completion tokens the same of answers
-- @args 5.. use text an entry, then how many ms ago it was used; of each in turn
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', moved} how many entries were used later than was known
-- @errors GW_BADARG
-- @idempotent no: a repeated call counts twice, so nobody repeats it
-- @complexity O(entries * log n)
-- @slot {cache}
--@include lib/args.lua
--@include lib/clock.lua

local BEFORE = 4 -- arguments
local MOST = 512
local INDEX_KEEP_MS = 3456000000 -- as in `lib/cache_index.lua`

local count = (#ARGV - BEFORE - 1) / 2
if #KEYS ~= 2 or count < 0 or count % 1 ~= 0 or count > MOST then
  bad('two keys, four sums, and up to 512 pairs')
end
local sums = { hits = whole(1, 0), misses = whole(2, 0), saved_prompt = whole(3, 0), saved_completion = whole(4, 0) }
for at = BEFORE + 1, #ARGV - 1, 2 do
  whole(at + 1, 0)
end
local now, pairs_of = clock_ms(whole(#ARGV, 0)), {}
for at = BEFORE + 1, #ARGV - 1, 2 do
  pairs_of[#pairs_of + 1] = string.format('%d', math.max(0, now - ARGV[at + 1]))
  pairs_of[#pairs_of + 1] = ARGV[at]
end
local moved = 0
if count > 0 then
  moved = call('ZADD', KEYS[1], 'XX', 'GT', 'CH', unpack(pairs_of))
end
for name, sum in pairs(sums) do
  if sum > 0 then
    call('HINCRBY', KEYS[2], name, string.format('%d', sum))
  end
end
call('PEXPIRE', KEYS[1], INDEX_KEEP_MS)
call('PEXPIRE', KEYS[2], INDEX_KEEP_MS)
return { 1, OK, moved }
