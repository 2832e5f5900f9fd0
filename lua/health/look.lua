#!lua flags=no-writes
-- @name health/look
-- @since 0.1.0
-- @summary Tells which of some models have a penalty, failures that count, or a bench.
-- @keys 1.. model hash argument penalty and bench of a model
-- @args 1 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, ..} and for each model of which something is known: its place among
-- the keys from 1, points as text, since, hits, failures, benched until
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: it only reads
-- @complexity O(keys)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

if #KEYS < 1 or #ARGV ~= 1 then
  bad('a key at least, and one argument')
end
local now, found = clock_ms(whole(1, 0)), {}
for at = 1, #KEYS do
  local points, since, hits, failures, until_at =
    unpack(call('HMGET', KEYS[at], 'points', 'points_since', 'hits', 'failures', 'bench_until'))
  if points or failures or until_at then
    local _, words = string.gsub(failures or '', '%S+', '')
    if words % 4 ~= 0 or not tonumber(points or 0) then
      unreadable(at)
    end
    found[#found + 1], found[#found + 2] = at, points or '0'
    found[#found + 1], found[#found + 2] = stored(since, at), stored(hits, at)
    found[#found + 1], found[#found + 2] = words / 4, stored(until_at, at)
  end
end
return { 1, OK, now, unpack(found) }
