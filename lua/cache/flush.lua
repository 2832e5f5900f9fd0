#!lua
-- @name cache/flush
-- @since 0.1.0
-- @summary Takes a part of the entries out of the index: those of a client, of a model, or all.
-- @keys 1 index zset 40days member -> last use (ms)
-- @keys 2 records hash 40days member -> size, client, model; sums
-- @keys 3 ends zset 40days member -> when it ends (ms)
-- @keys 4 doomed zset 40days members to be deleted -> since when (ms)
-- @args 1 client text whose; `-` for all
-- @args 2 model text of which; `-` for all
-- @args 3 cursor text where the part begins; 0 for the first one
-- @args 4 most count about how many entries are looked at; at most 256
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', cursor, removed, victim ...} delete these, then go on; the cursor is 0 after the last
-- @returns part; those above `removed` left the index before, but were not deleted
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(most)
-- @slot {cache}
-- Answers that are being fetched meanwhile are not stored: `admit` holds their beginning against `flushed`.
--@include lib/args.lua
--@include lib/clock.lua

local MOST = 256
--@include lib/cache_index.lua

local client, model, cursor, most = ARGV[1], ARGV[2], ARGV[3], whole(4, 1)
if #KEYS ~= 4 or #ARGV ~= 5 or most > MOST or not string.match(cursor, '^%d+$')
  or not string.match(client, '^%S+$') or not string.match(model, '^%S+$') then
  bad('four keys and five arguments; at most 256 at once')
end
local now = clock_ms(whole(5, 0))
local bytes = stored(call('HGET', KEYS[2], 'bytes'), 2)
local part = call('HSCAN', KEYS[2], cursor, 'COUNT', string.format('%d', most))
local victims = {}
for at = 1, #part[2], 2 do
  local member = part[2][at]
  local whose, of = string.match(part[2][at + 1], '^%d+ (%S+) (%S+)$')
  if string.match(member, MEMBER) and (client == '-' or client == whose) and (model == '-' or model == of) then
    victims[#victims + 1] = member
  end
end
if cursor == '0' then
  local whose = client ~= '-' and ':c:' .. client or model ~= '-' and ':m:' .. model or ''
  call('HSET', KEYS[2], 'flushed' .. whose, string.format('%d', now))
end
call('HSET', KEYS[2], 'bytes', string.format('%d', math.max(0, bytes - forget(victims))))
call('HINCRBY', KEYS[2], 'removed', #victims)
doom(victims, now)
local removed = #victims
name_again(victims, now)
keep_index()
return { 1, OK, part[1], removed, unpack(victims) }
