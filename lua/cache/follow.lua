#!lua
-- @name cache/follow
-- @since 0.1.0
-- @summary Reads what a leader has handed on, and whether it still leads.
-- @keys 1 lead hash argument see `lib/cache_lead.lua`
-- @keys 2 feed list argument sealed pieces of this lead's answer
-- @args 1 token count of the lead
-- @args 2 first count how many pieces the caller has
-- @args 3 most count how many further ones are given; at most 64
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', length, piece ...} it leads
-- @returns {1, 'over', length, why, piece ...} it does not; why is empty where it did not say
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent reads only
-- @complexity O(pieces)
-- @slot {digest}
--@include lib/args.lua
--@include lib/cache_codes.lua
--@include lib/clock.lua

local MOST = 64

local token, first, most = whole(1, 1), whole(2, 0), whole(3, 1)
if #KEYS ~= 2 or #ARGV ~= 4 or most > MOST then
  bad('two keys and four arguments; at most 64 pieces')
end
local now = clock_ms(whole(4, 0))
local lead = call('HMGET', KEYS[1], 'token', 'until', 'why')
local pieces = call('LRANGE', KEYS[2], string.format('%d', first), string.format('%d', first + most - 1))
local is_mine = stored(lead[1], 1) == token
local length = call('LLEN', KEYS[2])
if is_mine and stored(lead[2], 1) > now then
  return { 1, OK, length, unpack(pieces) }
end
return { 1, OVER, length, is_mine and lead[3] or '', unpack(pieces) }
