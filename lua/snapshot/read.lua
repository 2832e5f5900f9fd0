#!lua
-- @name snapshot/read
-- @since 0.1.0
-- @summary Gives the present snapshot to a worker that has another one.
-- @keys 1 snapshot hash 1day version, at (ms), fence and blob
-- @args 1 version count that of the worker, 0 for none
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', version, now_ms, blob} the worker has another; {2, 'ok', version, now_ms, ''} it has it
-- @returns {0, 'none', 0, now_ms, ''} there is none
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent reads only
-- @complexity O(size of the blob)
-- @slot {snap}
--@include lib/args.lua
--@include lib/clock.lua

local known = whole(1, 0)
if #KEYS ~= 1 or #ARGV ~= 2 then
  bad('one key and two arguments')
end
local now = clock_ms(whole(2, 0))
local version = stored(call('HGET', KEYS[1], 'version'), 1)
if version == 0 then
  return { 0, NONE, 0, now, '' }
end
if version == known then
  return { 2, OK, version, now, '' }
end
return { 1, OK, version, now, call('HGET', KEYS[1], 'blob') or '' }
