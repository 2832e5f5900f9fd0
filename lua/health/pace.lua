#!lua
-- @name health/pace
-- @since 0.1.0
-- @summary Keeps when each resting key may be checked next, for whoever has the role.
-- @keys 1 probe hash 1day fence, and for each key when it is due and how often it was checked
-- @args 1 fence count of the role's term
-- @args 2 now_ms ms 0 for the server's clock
-- @args 3.. key,due,tries text,ms,count three for each change; due 0 forgets the key
-- @returns {1, 'ok', now_ms, ..} and key, due, tries of each that is known now
-- @returns {0, 'stale', now_ms} a newer term has written
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(keys)
-- @slot {probe}
--@include lib/args.lua
--@include lib/clock.lua

local KEEP_MS = 86400000

if #KEYS ~= 1 or #ARGV < 2 or (#ARGV - 2) % 3 ~= 0 then
  bad('one key, and three arguments for each change')
end
local fence, now = whole(1, 0), clock_ms(whole(2, 0))
for at = 3, #ARGV, 3 do
  if not string.match(ARGV[at], '^%S*%.%S*$') then
    bad('a key has a dot and no spaces')
  end
  whole(at + 1, 0)
  whole(at + 2, 0)
end
if stored(call('HGET', KEYS[1], 'fence'), 1) > fence then
  return { 0, STALE, now }
end
call('HSET', KEYS[1], 'fence', string.format('%d', fence))
for at = 3, #ARGV, 3 do
  if ARGV[at + 1] == '0' then
    call('HDEL', KEYS[1], ARGV[at])
  else
    call('HSET', KEYS[1], ARGV[at], ARGV[at + 1] .. ' ' .. ARGV[at + 2])
  end
end
call('PEXPIRE', KEYS[1], KEEP_MS)
local flat, known = call('HGETALL', KEYS[1]), {}
for at = 1, #flat, 2 do
  local due, tries = string.match(flat[at + 1], '^(%d+) (%d+)$')
  if due then
    known[#known + 1], known[#known + 2], known[#known + 3] = flat[at], tonumber(due), tonumber(tries)
  end
end
return { 1, OK, now, unpack(known) }
