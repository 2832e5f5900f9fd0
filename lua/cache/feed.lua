#!lua
-- @name cache/feed
-- @since 0.1.0
-- @summary Hands on what a leader has received, in order and once, and renews its lead.
-- @keys 1 lead hash argument see `lib/cache_lead.lua`
-- @keys 2 feed list argument sealed pieces of this lead's answer
-- @args 1 owner text the worker that leads
-- @args 2 token count of its lead
-- @args 3 first count how many pieces stand before those of this call
-- @args 4 keep ms how long the feed can be read after its last piece
-- @args 5.. piece text at most 64
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', length} of the feed now
-- @returns {0, 'gap', length} pieces before these are missing; {0, 'stale'} another leads, or nobody
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: what stands there already is not added again
-- @complexity O(pieces and followers)
-- @slot {digest}
--@include lib/args.lua
--@include lib/cache_codes.lua
--@include lib/clock.lua

local MOST = 64
local BEFORE = 4 -- arguments
--@include lib/cache_lead.lua

local owner, token, first, keep = ARGV[1], whole(2, 1), whole(3, 0), whole(4, 1)
local count = #ARGV - BEFORE - 1
if #KEYS ~= 2 or owner == '' or count < 1 or count > MOST then
  bad('two keys, and 1 to 64 pieces')
end
local now = clock_ms(whole(#ARGV, 0))
if not is_lead(owner, token) then
  return { 0, STALE }
end
local length = call('LLEN', KEYS[2])
if length < first then
  return { 0, GAP, length }
end
for at = length - first + 1, count do
  length = call('RPUSH', KEYS[2], ARGV[BEFORE + at])
end
call('PEXPIRE', KEYS[2], keep)
call('HSET', KEYS[1], 'until', string.format('%d', now + DEAD_MS))
call('PEXPIRE', KEYS[1], DEAD_MS + KEEP_MS)
wake(call('HGET', KEYS[1], 'ears') or '', 'feed')
return { 1, OK, length }
