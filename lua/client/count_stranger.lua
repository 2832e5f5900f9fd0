#!lua
-- @name client/count_stranger
-- @since 0.1.0
-- @summary Counts a request without a valid credential by the network it came from, minute by minute.
-- @keys 1 strangers hash 2min network -> requests this minute; _rest: networks beyond the bound; _minute
-- @args 1 network text not beginning with an underscore
-- @args 2 apart count how many networks are counted apart at most, from 1
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', count, ms left} of this network, or of all that found no place of their own
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: a repeated call counts twice, which only refuses a stranger sooner
-- @complexity O(1); O(networks) for the first of a minute
-- @slot {auth}
--@include lib/args.lua
--@include lib/clock.lua

local MINUTE_MS, KEEP_MS = 60000, 120000

local network, apart = ARGV[1], whole(2, 1)
if #KEYS ~= 1 or #ARGV ~= 3 or network == '' or string.byte(network) == 95 then
  bad('one key, three arguments, and a network that does not begin with an underscore')
end
local now = clock_ms(whole(3, 0))
local minute = math.floor(now / MINUTE_MS)
local begun = call('HGET', KEYS[1], '_minute')
local known = begun and stored(begun, 1) or -1
-- A clock that steps back into the minute before stays in the window; one that steps further begins anew.
if known ~= minute and known ~= minute + 1 then
  call('DEL', KEYS[1])
  call('HSET', KEYS[1], '_minute', string.format('%d', minute))
  call('PEXPIRE', KEYS[1], KEEP_MS)
  known = minute
end
if call('HLEN', KEYS[1]) > apart and call('HEXISTS', KEYS[1], network) == 0 then
  network = '_rest' -- itself one field, so that there are at most two more than networks
end
local count = call('HINCRBY', KEYS[1], network, 1)
return { 1, OK, count, (known + 1) * MINUTE_MS - now }
