#!lua
-- @name snapshot/publish
-- @since 0.1.0
-- @summary Puts a new snapshot in place of the last one, if its builder still has the role, and tells all.
-- @keys 1 lead hash 1day owner, until (ms) and fence of the builder's term
-- @keys 2 snapshot hash 1day version, at (ms), fence and blob
-- @args 1 owner text the builder
-- @args 2 fence count of its term
-- @args 3 at_ms ms when it began to build
-- @args 4 blob text the snapshot
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', version, now_ms}
-- @returns {0, 'stale', version, now_ms} the builder's term is over, or another has begun: nothing done
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: repeated, the same snapshot gets a new version
-- @complexity O(size of the blob)
-- @slot {snap}
-- A version is greater than all before it, also when the key was lost: at least the time at which it
-- was published.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local KEEP_MS = 86400000

local fence, at = whole(2, 1), whole(3, 1)
if #KEYS ~= 2 or #ARGV ~= 5 or ARGV[1] == '' or ARGV[4] == '' then
  bad('two keys and five arguments')
end
local now = clock_ms(whole(5, 0))
local lead = call('HMGET', KEYS[1], 'owner', 'until', 'fence')
local last = call('HMGET', KEYS[2], 'version', 'fence')
local version = stored(last[1], 2)
if lead[1] ~= ARGV[1] or stored(lead[3], 1) ~= fence or stored(lead[2], 1) <= now
  or stored(last[2], 2) > fence then
  return { 0, STALE, version, now }
end
version = math.max(version + 1, now)
local text = string.format('%d', version)
call('HSET', KEYS[2], 'version', text, 'at', ARGV[3], 'fence', ARGV[2], 'blob', ARGV[4])
call('PEXPIRE', KEYS[2], KEEP_MS)
tell(string.format('snapshot %s %d', text, now))
return { 1, OK, version, now }
