#!lua flags=no-writes
-- @name health/outage
-- @since 0.1.0
-- @summary Tells how a provider stands.
-- @keys 1 outage hash 1day the provider's record: lib/outage_record.lua has the fields
-- @args 1 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, state, ms until it lets a trial through, targets that failed lately}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: it only reads
-- @complexity O(1)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

if #KEYS ~= 1 or #ARGV ~= 1 then
  bad('one key and one argument')
end
local now = clock_ms(whole(1, 0))
--@include lib/tell.lua
--@include lib/outage_record.lua

local state, wait, failed = outage_standing(outage_read(KEYS[1], 1))
return { 1, OK, now, state, wait, failed }
