#!lua
-- @name cache/renew
-- @since 0.1.0
-- @summary Prolongs a lead and what it has handed on; says whether somebody follows.
-- @keys 1 lead hash argument see `lib/cache_lead.lua`
-- @keys 2 feed list argument sealed pieces of this lead's answer
-- @args 1 owner text the worker that leads
-- @args 2 token count of its lead
-- @args 3 lease ms from now on; 0.8 s where somebody follows; at most ten minutes
-- @args 4 keep ms how long the feed can be read from now on
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', followed} 1 where somebody follows, else 0; {0, 'stale'} another leads, or nobody
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(1)
-- @slot {digest}
--@include lib/args.lua
--@include lib/clock.lua

local LEASE_MAX_MS = 600000
--@include lib/cache_lead.lua

local owner, token, lease, keep = ARGV[1], whole(2, 1), whole(3, 1), whole(4, 1)
if #KEYS ~= 2 or #ARGV ~= 5 or owner == '' or lease > LEASE_MAX_MS then
  bad('two keys and five arguments; a lease is at most ten minutes')
end
local now = clock_ms(whole(5, 0))
if not is_lead(owner, token) then
  return { 0, STALE }
end
local followed = (call('HGET', KEYS[1], 'ears') or '') ~= ''
lease = followed and math.min(lease, DEAD_MS) or lease
call('HSET', KEYS[1], 'until', string.format('%d', now + lease))
call('PEXPIRE', KEYS[1], lease + KEEP_MS)
call('PEXPIRE', KEYS[2], keep)
return { 1, OK, followed and 1 or 0 }
