#!lua
-- @name health/lift
-- @since 0.1.0
-- @summary Ends the ripe rests of a key that was found well: those we guessed, half served.
-- @keys 1 health hash 54h rest of a target, or of a key over all its models
-- @keys 2.. health hash 54h further ones
-- @args 1 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', rests ended}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(keys)
-- @slot {provider.account}
-- The ladder stays. `core/limits/probe.py` says what is ripe, `lift` of `core/limits/rest.py` what goes.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local LEFT_MIN_MS = 60000

if #KEYS < 1 or #ARGV ~= 1 then
  bad('a key at least, and one argument')
end
local now, lifted = clock_ms(whole(1, 0)), 0
for at = 1, #KEYS do
  local set_at, until_at, source, breaker, opens_at = unpack(
    call('HMGET', KEYS[at], 'rest_set_at', 'rest_until', 'rest_source', 'breaker', 'until'))
  local left = stored(until_at, at) - now
  if source == 'heuristic' and left > LEFT_MIN_MS and now - stored(set_at, at) >= left then
    call('HDEL', KEYS[at], 'rest_until', 'rest_source', 'rest_reason')
    lifted = lifted + 1
    local open_ms = breaker == 'open' and stored(opens_at, at) - now or 0
    local code = open_ms > 0 and BREAKER_OPEN or 'well'
    tell(string.format('health %s %s %d %d', KEYS[at], code, math.max(open_ms, 0), now))
  end
end
return { 1, OK, lifted }
