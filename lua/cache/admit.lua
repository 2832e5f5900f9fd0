#!lua
-- @name cache/admit
-- @since 0.1.0
-- @summary Counts an entry before it is written, and names those that must be deleted before that.
-- @keys 1 index zset 40days member -> last use (ms)
-- @keys 2 records hash 40days member -> size, client, model; sums
-- @keys 3 ends zset 40days member -> when it ends (ms)
-- @keys 4 doomed zset 40days members to be deleted -> since when (ms)
-- @args 1 member text key of the entry without its prefix
-- @args 2 size bytes of the entry with what belongs to it
-- @args 3 ttl ms its life
-- @args 4 client text who asked
-- @args 5 model text what answered
-- @args 6 begun ms when its lead began; what was flushed since is not stored again
-- @args 7 max_entries count above 0
-- @args 8 max_bytes bytes of all entries
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', victim ...} it may be written once the victims are deleted
-- @returns {0, 'full', victim ...} delete these, then ask again; {0, 'too_large'}; {0, 'flushed'}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes; repeated, it may name no victims, which are named again a second later
-- @complexity O(log n); at most 128 go in a call
-- @slot {cache}
--@include lib/args.lua
--@include lib/cache_codes.lua
--@include lib/clock.lua

local GO_AT_ONCE = 128
local ENDED_AT_ONCE = 128
local SLACK_MS = 5000 -- clocks of servers differ: what ends there may still be here
--@include lib/cache_index.lua

local member, size, ttl = ARGV[1], whole(2, 1), whole(3, 1)
local begun, max_entries, max_bytes = whole(6, 0), whole(7, 1), whole(8, 1)
if #KEYS ~= 4 or #ARGV ~= 9 or not string.match(member, MEMBER)
  or not string.match(ARGV[4], '^%S+$') or not string.match(ARGV[5], '^%S+$') then
  bad('four keys and nine arguments')
end
local now = clock_ms(whole(9, 0))

local texts = call('HMGET', KEYS[2], 'bytes', member, 'flushed', 'flushed' .. ':c:' .. ARGV[4],
  'flushed' .. ':m:' .. ARGV[5])
local bytes, before = stored(texts[1], 2), size_of(texts[2])
local flushed = math.max(stored(texts[3], 2), stored(texts[4], 2), stored(texts[5], 2))
if size > max_bytes then
  return { 0, TOO_LARGE }
end
if begun > 0 and flushed >= begun and flushed <= now + SLACK_MS then -- later: the clock stepped back
  return { 0, FLUSHED }
end

local ended = call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('%d', now - SLACK_MS), 'LIMIT', '0',
  string.format('%d', ENDED_AT_ONCE))
bytes = math.max(0, bytes - forget(ended))
before = call('HEXISTS', KEYS[2], member) == 1 and before or 0
size = math.max(size, before) -- until it is written, what it takes the place of is there

local victims, is_new, entries = {}, not call('ZSCORE', KEYS[1], member), call('ZCARD', KEYS[1])
bytes = entries > 0 and bytes or 0 -- where a server that evicts has lost the index
entries = entries + (is_new and 1 or 0)
local over_bytes, over = bytes - before + size - max_bytes, entries - max_entries
if over > 0 or over_bytes > 0 then
  local oldest = call('ZRANGE', KEYS[1], '0', string.format('%d', GO_AT_ONCE))
  local fields = call('HMGET', KEYS[2], unpack(oldest))
  for at, name in ipairs(oldest) do
    if (over > 0 or over_bytes > 0) and name ~= member then
      victims[#victims + 1] = name
      over, over_bytes = over - 1, over_bytes - size_of(fields[at])
    end
  end
  bytes = math.max(0, bytes - forget(victims))
  doom(victims, now)
end
local is_full = over > 0 or over_bytes > 0
local counts = { stored = is_full and 0 or 1, evicted = #victims, expired = #ended }
if not is_full then
  bytes = bytes - before + size
  call('ZADD', KEYS[1], string.format('%d', now), member)
  call('ZADD', KEYS[3], string.format('%d', now + ttl), member)
  call('HSET', KEYS[2], member, string.format('%d %s %s', size, ARGV[4], ARGV[5]))
  call('ZREM', KEYS[4], member)
end
call('HSET', KEYS[2], 'bytes', string.format('%d', bytes))
for name, count in pairs(counts) do
  call('HINCRBY', KEYS[2], name, count)
end
name_again(victims, now)
keep_index()
return { is_full and 0 or 1, is_full and FULL or OK, unpack(victims) }
