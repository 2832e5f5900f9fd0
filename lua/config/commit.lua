#!lua
-- @name config/commit
-- @since 0.1.0
-- @summary Puts a new overlay in place of the one its writer saw, and tells all workers.
-- @keys 1 overlay hash none version, id of its writing, at (ms) and patches, JSON
-- @args 1 seen count the version the writer saw, 0 for none
-- @args 2 id text of this writing: the same one is not done twice
-- @args 3 patches text the whole new overlay
-- @args 4 least count the version may not be smaller than this; 0 for whatever comes next
-- @args 5 valid_until ms after it nothing is done; 0 for no end
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', version, now_ms} stored; {2, 'ok', version, now_ms} this very writing stands there
-- @returns {0, 'stale', version, now_ms} another version stands there; {0, 'late', version, now_ms}: nothing done
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by id
-- @complexity O(size of the overlay)
-- @slot {cfg}
-- Without a TTL: it is as much the operator's word as the file is.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local seen, least, valid_until = whole(1, 0), whole(4, 0), whole(5, 0)
if #KEYS ~= 1 or #ARGV ~= 6 or ARGV[2] == '' or ARGV[3] == '' then
  bad('one key and six arguments')
end
local now = clock_ms(whole(6, 0))
local found = call('HMGET', KEYS[1], 'version', 'id')
local version = stored(found[1], 1)
if found[2] == ARGV[2] then
  return { 2, OK, version, now }
end
if version ~= seen then
  return { 0, STALE, version, now }
end
if valid_until > 0 and now > valid_until then
  return { 0, LATE, version, now }
end
version = math.max(version + 1, least)
local text = string.format('%d', version)
call('HSET', KEYS[1], 'version', text, 'id', ARGV[2], 'at', string.format('%d', now), 'patches', ARGV[3])
tell(string.format('config %s %d', text, now))
return { 1, OK, version, now }
