#!lua
-- @name usage/note
-- @since 0.1.0
-- @summary Notes that the use of some keys is counted now, so that who asks finds them all.
-- @keys 1 index zset 92days what the use of a key is counted under -> when that was noted last (ms)
-- @args 1.. place text what the use of a key is counted under
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok'}
-- @errors GW_BADARG
-- @idempotent yes: the later time stays
-- @complexity O(places * log keys)
-- @slot {usage}
-- What was not noted for as long as a day of use is kept is forgotten.
--@include lib/args.lua
--@include lib/clock.lua

local KEEP_MS = 7948800000 -- 92 days
if #KEYS ~= 1 or #ARGV < 2 then
  bad('the number of keys and arguments do not match')
end
local now = clock_ms(whole(#ARGV, 0))
for n = 1, #ARGV - 1 do
  call('ZADD', KEYS[1], 'GT', string.format('%d', now), ARGV[n])
end
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%d', now - KEEP_MS))
call('PEXPIRE', KEYS[1], KEEP_MS)
return { 1, OK }
