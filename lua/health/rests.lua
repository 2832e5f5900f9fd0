#!lua flags=no-writes
-- @name health/rests
-- @since 0.1.0
-- @summary Tells which of some health records rest, since when, until when, on whose word and why.
-- @keys 1.. health hash 54h rest of a target, or of a key over all its models
-- @args 1 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, ..} and for each that rests: its place among the keys from 1, set at,
-- until, source, reason
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: it only reads
-- @complexity O(keys)
-- @slot {provider.account}
--@include lib/args.lua
--@include lib/clock.lua

if #KEYS < 1 or #ARGV ~= 1 then
  bad('a key at least, and one argument')
end
local now, found = clock_ms(whole(1, 0)), {}
for at = 1, #KEYS do
  local set_at, until_at, source, reason =
    unpack(call('HMGET', KEYS[at], 'rest_set_at', 'rest_until', 'rest_source', 'rest_reason'))
  if stored(until_at, at) > now then
    found[#found + 1], found[#found + 2] = at, stored(set_at, at)
    found[#found + 1], found[#found + 2] = stored(until_at, at), source or ''
    found[#found + 1] = reason or ''
  end
end
return { 1, OK, now, unpack(found) }
