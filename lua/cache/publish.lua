#!lua
-- @name cache/publish
-- @since 0.1.0
-- @summary Stores the answer that a leader fetched, and ends its lead; one that came too late is refused.
-- @keys 1 lead hash argument see `lib/cache_lead.lua`
-- @keys 2 entry string argument format, stored at (ms), ends at (ms) and the sealed answer
-- @args 1 owner text the worker that leads
-- @args 2 token count of its lead
-- @args 3 format text how the answer is written
-- @args 4 ttl ms how long it may be given to others
-- @args 5 body text the answer, sealed
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok'}; {0, 'stale'} another leads, or nobody: nothing was stored
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: repeated, it is stale
-- @complexity O(size of the answer)
-- @slot {digest}
--@include lib/args.lua
--@include lib/clock.lua

--@include lib/cache_lead.lua

local owner, token, format, ttl = ARGV[1], whole(2, 1), ARGV[3], whole(4, 1)
if #KEYS ~= 2 or #ARGV ~= 6 or owner == '' or not string.match(format, '^%S+$') or ARGV[5] == '' then
  bad('two keys and six arguments')
end
local now = clock_ms(whole(6, 0))
if not is_lead(owner, token) then
  return { 0, STALE }
end
local head = string.format('%s %d %d\n', format, now, now + ttl)
call('SET', KEYS[2], head .. ARGV[5], 'PX', string.format('%d', ttl))
free('kept')
return { 1, OK }
