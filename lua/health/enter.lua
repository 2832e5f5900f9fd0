#!lua
-- @name health/enter
-- @since 0.1.0
-- @summary Asks whether a provider that was in trouble may be called; the first one is the trial.
-- @keys 1 outage hash 1day the provider's record: lib/outage_record.lua has the fields
-- @args 1 lease_id text the lease that will be asked for
-- @args 2 ttl ms how long it may live, at most 1 h
-- @args 3 worker text without spaces; `free` finds the trial of a dead worker by it
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', 1 for the trial or 0, now_ms}
-- @returns {0, 'provider_open', ms until a trial, now_ms}
-- @returns {0, 'trial_taken', ms until it may be worth asking again, now_ms}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id
-- @complexity O(1)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

local RETRY_MS, LEASE_MAX_MS = 1000, 3600000

local lease_id, ttl, worker = ARGV[1], whole(2, 1), ARGV[3]
if #KEYS ~= 1 or #ARGV ~= 4 or lease_id == '' or not string.match(worker, '^%S+$') or ttl > LEASE_MAX_MS then
  bad('one key and four arguments; a lease lives for an hour at most')
end
local now = clock_ms(whole(4, 0))
--@include lib/tell.lua
--@include lib/outage_record.lua

local outage = outage_read(KEYS[1], 1)
if outage.state == 'closed' then
  return { 1, OK, 0, now }
end
local _, wait = outage_standing(outage)
if wait > 0 then
  return { 0, PROVIDER_OPEN, wait, now }
end
local left = outage.trial_until - now
if outage.state == 'half_open' and left > 0 and left <= TRIAL_MAX_MS then
  if outage.trial == lease_id then
    return { 1, OK, 1, now }
  end
  return { 0, TRIAL_TAKEN, math.min(left, RETRY_MS), now }
end
outage.state, outage.trial, outage.trial_until, outage.trial_worker = 'half_open', lease_id, now + ttl, worker
outage_write(KEYS[1], outage)
outage_tell(KEYS[1], outage)
return { 1, OK, 1, now }
