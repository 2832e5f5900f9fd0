#!lua
-- @name health/reject
-- @since 0.1.0
-- @summary Rests a key on all its models because the provider refused its credential.
-- @keys 1 health hash 54h rest of the key over all its models
-- @args 1 rest ms how long
-- @args 2 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', ends} when it ends, ms; a longer rest stays
-- @errors GW_BADARG
-- @idempotent yes, but for the time that passed
-- @complexity O(1)
-- @slot {provider.account}
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local LONGEST_MS, KEEP_MS = 93600000, 194400000 -- 26 h; 54 h

local rest = whole(1, 1)
if #KEYS ~= 1 or #ARGV ~= 2 or rest > LONGEST_MS then
  bad('one key and two arguments, a rest of 26 h at most')
end
local now = clock_ms(whole(2, 0))
local ends = tonumber(call('HGET', KEYS[1], 'rest_until') or 0)
if ends >= now + rest and ends <= now + LONGEST_MS then
  return { 1, OK, ends }
end
ends = string.format('%d', now + rest)
call('HSET', KEYS[1], 'rest_until', ends, 'rest_source', 'heuristic', 'rest_reason', 'auth',
  'rest_set_at', string.format('%d', now))
call('PEXPIRE', KEYS[1], KEEP_MS)
tell(string.format('health %s %s %d %d', KEYS[1], COOLDOWN, rest, now))
return { 1, OK, now + rest }
