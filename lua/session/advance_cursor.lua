#!lua
-- @name session/advance_cursor
-- @since 0.1.0
-- @summary Takes the next place of a round-robin cursor.
-- @keys 1 cursor string argument how often the cursor was advanced
-- @args 1 ttl ms how long an unused cursor is kept
-- @returns {1, 'ok', position} position counts from 1
-- @errors GW_BADARG
-- @idempotent no: a repeated call skips a place, which round robin forgives
-- @complexity O(1)
-- @slot {combo}
--@include lib/args.lua

local ttl = whole(1, 1)
if #KEYS ~= 1 or #ARGV ~= 1 then
  bad('one key and one argument')
end
local position = call('INCR', KEYS[1])
call('PEXPIRE', KEYS[1], ttl)
return { 1, OK, position }
