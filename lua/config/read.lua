#!lua
-- @name config/read
-- @since 0.1.0
-- @summary Gives the present overlay to a worker that has another one.
-- @keys 1 overlay hash none version, id of its writing, at (ms) and patches, JSON
-- @args 1 version count that of the worker, 0 for none
-- @args 2 id text of the writing the worker has; - for none
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', version, now_ms, id, patches} the worker has another; {2, 'ok', version, now_ms, '', ''} it has it
-- @returns {0, 'none', 0, now_ms, '', ''} there is none
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent reads only
-- @complexity O(size of the overlay)
-- @slot {cfg}
--@include lib/args.lua
--@include lib/clock.lua

local known = whole(1, 0)
if #KEYS ~= 1 or #ARGV ~= 3 or ARGV[2] == '' then
  bad('one key and three arguments')
end
local now = clock_ms(whole(3, 0))
local found = call('HMGET', KEYS[1], 'version', 'id')
local version = stored(found[1], 1)
if version == 0 then
  return { 0, NONE, 0, now, '', '' }
end
if version == known and found[2] == ARGV[2] then
  return { 2, OK, version, now, '', '' }
end
return { 1, OK, version, now, found[2] or '', call('HGET', KEYS[1], 'patches') or '' }
