#!lua
-- @name health/free
-- @since 0.1.0
-- @summary Frees the trial of a provider that a dead worker held, so that another may try.
-- @keys 1 outage hash 1day the provider's record: lib/outage_record.lua has the fields
-- @args 1 valid_until ms after this the workers may have come back: nothing is done
-- @args 2.. worker text a dead worker
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', trials freed}
-- @returns {0, 'stale', 0} valid_until has passed
-- @errors GW_BADARG
-- @idempotent yes
-- @complexity O(workers)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

local valid_until = whole(1, 0)
if #KEYS ~= 1 or #ARGV < 3 then
  bad('one key, and at least one worker')
end
if clock_ms(whole(#ARGV, 0)) > valid_until then
  return { 0, STALE, 0 }
end
local worker, freed = call('HGET', KEYS[1], 'trial_worker'), 0
for at = 2, #ARGV - 1 do
  if worker == ARGV[at] then
    freed = call('HDEL', KEYS[1], 'trial', 'trial_until', 'trial_worker') > 0 and 1 or 0
  end
end
return { 1, OK, freed }
