#!lua
-- @name health/clear
-- @since 0.1.0
-- @summary Forgets rests, ladders, breakers, penalties and benches because an operator says so, and tells all.
-- @keys 1 record hash argument health of a target or key, or the record of a model or of a provider
-- @keys 2.. record hash argument further ones
-- @args 1 kind text target, model or provider, for all of them
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', records that said something}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(keys)
-- @slot {provider.account}
-- Calls that were admitted before may still report: a fence stays, so that they move neither a breaker
-- nor a bench.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local FENCE_MS = 4800000 -- 80 min: no lease reports later
local kind = ARGV[1]

if #KEYS < 1 or #ARGV ~= 2 then
  bad('a key at least, and two arguments')
end
local now, cleared = clock_ms(whole(2, 0)), 0
local gens, says = {}, {}
for at = 1, #KEYS do
  local gen, points, failures, until_at, state, failed =
    unpack(call('HMGET', KEYS[at], 'gen', 'points', 'failures', 'bench_until', 'state', 'failed'))
  local fields = call('HLEN', KEYS[at])
  gens[at] = stored(gen, at)
  if kind == 'target' then
    says[at] = fields > (gen and 1 or 0)
  elseif kind == 'model' then
    says[at] = stored(until_at, at) > now or points or failures
  elseif kind == 'provider' then
    says[at] = state or failed
  else
    bad('the kind is target, model or provider')
  end
end
for at = 1, #KEYS do
  if says[at] then
    call('DEL', KEYS[at])
    if kind == 'target' then
      call('HSET', KEYS[at], 'gen', string.format('%d', math.max(gens[at] + 1, now * 1000)))
      tell(string.format('health %s well 0 %d', KEYS[at], now))
    elseif kind == 'provider' then
      call('HSET', KEYS[at], 'changed_at', string.format('%d', now))
      tell(string.format('provider %s closed 0 0 %d', KEYS[at], now))
    else
      call('HSET', KEYS[at], 'bench_until', '0', 'bench_set_at', string.format('%d', now), 'bench_by', 'cleared')
      tell(string.format('model %s 0 0 0 0 %d', KEYS[at], now))
    end
    call('PEXPIRE', KEYS[at], FENCE_MS)
    cleared = cleared + 1
  end
end
return { 1, OK, cleared }
