#!lua
-- @name cache/give_up
-- @since 0.1.0
-- @summary Ends a lead without an entry, so that somebody else may lead at once.
-- @keys 1 lead hash argument see `lib/cache_lead.lua`
-- @args 1 owner text the worker that leads
-- @args 2 token count of its lead
-- @args 3 why text what followers are told
-- @returns {1, 'ok'}; {0, 'stale'} another leads, or nobody
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: repeated, it is stale
-- @complexity O(followers)
-- @slot {digest}
--@include lib/args.lua

--@include lib/cache_lead.lua

local owner, token, why = ARGV[1], whole(2, 1), ARGV[3]
if #KEYS ~= 1 or #ARGV ~= 3 or owner == '' or why == '' then
  bad('one key and three arguments')
end
if not is_lead(owner, token) then
  return { 0, STALE }
end
free(why)
return { 1, OK }
