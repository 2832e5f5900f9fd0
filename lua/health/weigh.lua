#!lua
-- @name health/weigh
-- @since 0.1.0
-- @summary Keeps whether so few providers are usable that the pool counts as degraded.
-- @keys 1 pool hash 1day degraded (0 or 1), turning (ms), usable, total, fence
-- @args 1 fence count of the role's term
-- @args 2 usable count providers with a usable key
-- @args 3 total count providers with any key
-- @args 4 ratio per_mille share below which it may be degraded
-- @args 5 min_providers count with fewer it never is
-- @args 6 entry ms how long the share must have been below
-- @args 7 exit ms how long it must be back
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', changed, degraded}
-- @returns {0, 'stale'} a newer term has written
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(1)
-- @slot {status}
-- The rules are those of `core/limits/degraded.py`.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local KEEP_MS = 86400000

if #KEYS ~= 1 or #ARGV ~= 8 then
  bad('one key and eight arguments')
end
local fence, usable, total, ratio = whole(1, 0), whole(2, 0), whole(3, 0), whole(4, 0)
local least, entry, exit, now = whole(5, 0), whole(6, 0), whole(7, 0), clock_ms(whole(8, 0))
local known = call('HMGET', KEYS[1], 'fence', 'degraded', 'turning')
if stored(known[1], 1) > fence then
  return { 0, STALE }
end
local before, turning = stored(known[2], 1), stored(known[3], 1)
local degraded = before
local wanted = total >= least and usable * 1000 < ratio * total and 1 or 0
if total < least then
  degraded, turning = 0, 0
elseif wanted == before then
  turning = 0
else
  turning = (turning == 0 or turning > now) and now or turning
  if now - turning >= (before == 1 and exit or entry) then
    degraded, turning = wanted, 0
  end
end
call('HSET', KEYS[1], 'fence', string.format('%d', fence), 'degraded', degraded,
  'turning', string.format('%d', turning), 'usable', usable, 'total', total)
call('PEXPIRE', KEYS[1], KEEP_MS)
local changed = degraded ~= before and 1 or 0
if changed == 1 then
  tell(string.format('status %d', now))
end
return { 1, OK, changed, degraded }
