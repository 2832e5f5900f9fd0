#!lua
-- @name health/judge
-- @since 0.1.0
-- @summary Books what a check said of a key, or forgets the key.
-- @keys 1 status hash 7days key -> status, rejections in a row, checked at, since, said, reason
-- @args 1 key text without spaces
-- @args 2 said text valid, rejected, unknown, or forget
-- @args 3 reason text of a rejection, without spaces
-- @args 4 disable_after count rejections in a row that disable, from 1
-- @args 5 took ms from the beginning of the check until now
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', changed, rejections} changed is 1 when the status is another one now
-- @returns {0, 'stale'} a check that began later has been booked
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: a repeated rejection counts twice; whoever checks claims the key before
-- @complexity O(1)
-- @slot {status}
-- The rules are those of `core/limits/key_status.py`.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local KEEP_MS = 604800000 -- 7 days; each pass writes anew
local SAID = { valid = true, rejected = true, unknown = true, forget = true }

local key, said, reason = ARGV[1], ARGV[2], ARGV[3]
if #KEYS ~= 1 or #ARGV ~= 6 or not string.match(key, '^%S+$') or not SAID[said]
  or not string.match(reason, '^%S+$') then
  bad('one key, six arguments, and words without spaces')
end
local disable_after, took, now = whole(4, 1), whole(5, 0), clock_ms(whole(6, 0))
if said == 'forget' then
  local known = call('HDEL', KEYS[1], key)
  if known == 1 then
    tell(string.format('status %d', now))
  end
  return { 1, OK, known, 0 }
end
local before, rejections, checked, since, _, last = string.match(
  call('HGET', KEYS[1], key) or 'unknown 0 0 0 unknown -', '^(%S+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
if not before then
  unreadable(1)
end
rejections, checked = tonumber(rejections), tonumber(checked)
if now - took < checked and checked <= now then
  return { 0, STALE }
end
local status = before
if said == 'valid' then
  status, rejections = 'healthy', 0
elseif said == 'rejected' then
  rejections = rejections + 1
  status = rejections >= disable_after and 'disabled' or 'invalid'
  last = reason
end
local changed = status ~= before and 1 or 0
call('HSET', KEYS[1], key, string.format('%s %d %d %s %s %s', status, rejections, now,
  changed == 1 and string.format('%d', now) or since, said, rejections > 0 and last or '-'))
call('PEXPIRE', KEYS[1], KEEP_MS)
if changed == 1 then
  tell(string.format('status %d', now))
end
return { 1, OK, changed, rejections }
