#!lua
-- @name config/note
-- @since 0.1.0
-- @summary Writes down what an operator changed, and lets go of the oldest.
-- @keys 1 audit zset 90days what was changed, JSON -> when (ms)
-- @args 1 entry text JSON, with an id of its own: the same one is not written twice
-- @args 2 most count entries that are kept
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms} written; {2, 'ok', now_ms} it stood there already
-- @errors GW_BADARG
-- @idempotent yes
-- @complexity O(log entries)
-- @slot {cfg}
--@include lib/args.lua
--@include lib/clock.lua

local KEEP_MS = 7776000000 -- 90 days

local entry, most = ARGV[1], whole(2, 1)
if #KEYS ~= 1 or #ARGV ~= 3 or entry == '' then
  bad('one key and three arguments')
end
local now = clock_ms(whole(3, 0))
local added = call('ZADD', KEYS[1], 'NX', string.format('%d', now), entry)
call('ZREMRANGEBYRANK', KEYS[1], '0', string.format('%d', -1 - most))
call('PEXPIRE', KEYS[1], KEEP_MS)
return { added == 1 and 1 or 2, OK, now }
