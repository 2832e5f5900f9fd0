#!lua
-- @name health/claim
-- @since 0.1.0
-- @summary Lets one worker check a key now, and nobody else for a while.
-- @keys 1 check string argument who checks the key
-- @args 1 owner text the worker that asks
-- @args 2 ttl ms for how long nobody else may
-- @returns {1, 'ok'} it may check
-- @returns {0, 'held'} the key was checked a moment ago
-- @errors GW_BADARG
-- @idempotent no: a repeated call is refused, and the key is checked at the next chance
-- @complexity O(1)
-- @slot {provider.account}
--@include lib/args.lua

local ttl = whole(2, 1)
if #KEYS ~= 1 or #ARGV ~= 2 then
  bad('one key and two arguments')
end
if call('SET', KEYS[1], ARGV[1], 'NX', 'PX', string.format('%d', ttl)) then
  return { 1, OK }
end
return { 0, HELD }
