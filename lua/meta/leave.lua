#!lua
-- @name meta/leave
-- @since 0.1.0
-- @summary Takes a worker off the list: one that ends, or a dead one whose leases were dealt with.
-- @keys 1 workers zset 80min worker id -> its last beat (ms)
-- @args 1 worker text the one that goes
-- @args 2 beat ms the last beat the caller knows of; 0 for whatever it is
-- @returns {1, 'ok'} taken off; {2, 'ok'} it was not there
-- @returns {0, 'alive'} it has beaten since, and stays
-- @errors GW_BADARG
-- @idempotent yes
-- @complexity O(log workers)
-- @slot {mem}
--@include lib/args.lua

local worker, beat = ARGV[1], whole(2, 0)
if #KEYS ~= 1 or #ARGV ~= 2 then
  bad('one key and two arguments')
end
local last = call('ZSCORE', KEYS[1], worker)
if last and beat > 0 and tonumber(last) ~= beat then
  return { 0, ALIVE }
end
return { call('ZREM', KEYS[1], worker) == 1 and 1 or 2, OK }
