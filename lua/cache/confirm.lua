#!lua
-- @name cache/confirm
-- @since 0.1.0
-- @summary Notes that victims are deleted; says whether an entry that was written is still counted.
-- @keys 1 index zset 40days member -> last use (ms)
-- @keys 2 doomed zset 40days members to be deleted -> since when (ms)
-- @args 1 member text what was written; `-` for nothing
-- @args 2.. victim text what was deleted
-- @returns {1, 'ok', counted} 1 where it is, or nothing was written; 0: delete it
-- @errors GW_BADARG
-- @idempotent yes
-- @complexity O(victims)
-- @slot {cache}
--@include lib/args.lua

if #KEYS ~= 2 or #ARGV < 1 or not (ARGV[1] == '-' or string.match(ARGV[1], '^%w+:{[^{}]+}$')) then
  bad('two keys and an argument')
end
if #ARGV > 1 then
  call('ZREM', KEYS[2], unpack(ARGV, 2))
end
local is_counted = ARGV[1] == '-' or call('ZSCORE', KEYS[1], ARGV[1])
return { 1, OK, is_counted and 1 or 0 }
