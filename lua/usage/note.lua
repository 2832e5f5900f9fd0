#!lua
-- @name usage/note
-- @since 0.1.0
-- @summary Notes on which day the use of some keys was counted last, so that who asks finds them all.
-- @keys 1 index zset 92days what the use of a key is counted under -> the last day (yyyymmdd)
-- @args 1 day yyyymmdd the present day, UTC
-- @args 2 oldest yyyymmdd what was not used since then is forgotten
-- @args 3.. place text what the use of a key is counted under
-- @returns {1, 'ok'}
-- @errors GW_BADARG
-- @idempotent yes: the later day stays
-- @complexity O(places * log keys)
-- @slot {usage}
--@include lib/args.lua

local KEEP_MS = 7948800000 -- 92 days
if #KEYS ~= 1 or #ARGV < 3 then
  bad('the number of keys and arguments do not match')
end
local day, oldest = whole(1, 10000101), whole(2, 10000101)
for n = 3, #ARGV do
  call('ZADD', KEYS[1], 'GT', day, ARGV[n])
end
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%d', oldest))
call('PEXPIRE', KEYS[1], KEEP_MS)
return { 1, OK }
