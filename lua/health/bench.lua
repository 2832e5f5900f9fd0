#!lua
-- @name health/bench
-- @since 0.1.0
-- @summary Has a key rest on all its models because an operator says so, and tells all.
-- @keys 1 health hash 54h of a key over all its models
-- @args 1 wait ms how long from now on, up to 24 h; a longer rest that there is stays
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', rests until, now_ms} it rests so long now; {2, 'ok', rests until, now_ms} it did before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes, but for the time that has passed
-- @complexity O(1)
-- @slot {provider.account}
-- As a rest on the provider's own word: no check of a key ends it before. The ladder stays as it is.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local MOST_MS, REST_MAX_MS = 86400000, 93600000 -- 24 h; 26 h, as in lib/health_fields.lua
local KEEP_MS = 194400000 -- 54 h

local wait = whole(1, 1)
if #KEYS ~= 1 or #ARGV ~= 2 or wait > MOST_MS then
  bad('one key, a time up to 24 h, and the time of now')
end
local now = clock_ms(whole(2, 0))
local rests, breaker, opens_at = unpack(call('HMGET', KEYS[1], 'rest_until', 'breaker', 'until'))
local before, open_until = stored(rests, 1), stored(opens_at, 1)
local ends = now + wait
if before >= ends and before <= now + REST_MAX_MS then
  return { 2, OK, before, now }
end
call('HSET', KEYS[1], 'rest_until', string.format('%d', ends), 'rest_source', 'authoritative', 'rest_reason',
  'operator', 'rest_set_at', string.format('%d', now))
call('PEXPIRE', KEYS[1], KEEP_MS)
if breaker ~= 'open' or open_until < ends then
  tell(string.format('health %s %s %d %d', KEYS[1], COOLDOWN, wait, now))
end
return { 1, OK, ends, now }
