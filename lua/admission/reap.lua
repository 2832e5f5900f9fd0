#!lua
-- @name admission/reap
-- @since 0.1.0
-- @summary Frees the concurrency slots that leases of dead workers hold in one window, and their trials.
-- @keys 1 window hash 27h counters and leases of a window, or of a client
-- @keys 2.. health hash 54h records of the window's target and key, for the window of a model
-- @args 1 valid_until ms after this the workers may have come back: nothing is done
-- @args 2.. worker text a dead worker
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', leases freed}
-- @returns {0, 'stale', 0} valid_until has passed
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by state of the lease
-- @complexity O(leases in flight)
-- @slot {provider.account}
-- Request and tokens stay as they are, so the lease expires, or is settled, as if its worker lived.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/window.lua

local FREED_AT_ONCE = 200 -- far from what unpack can do

local valid_until = whole(1, 0)
if #KEYS < 1 or #ARGV < 3 then
  bad('a window, and at least one worker')
end
local is_dead = {}
for at = 2, #ARGV - 1 do
  is_dead[ARGV[at]] = true
end
local now = clock_ms(whole(#ARGV, 0))
if now > valid_until then
  return { 0, STALE, 0 }
end

local key = KEYS[1]
local text = call('HGET', key, 'now')
if text and not match(text, READ) then
  unreadable(1)
end
local flat, freed, sets, is_freed = call('HGETALL', key), 0, {}, {}
for at = 1, #flat, 2 do
  local expiry, worker, rest = match(flat[at + 1], '^R (%d+) (%S+) (.+)$')
  if expiry and is_dead[worker] and expiry + 0 > now then
    freed, is_freed[flat[at]] = freed + 1, true
    sets[#sets + 1], sets[#sets + 2] = flat[at], string.format('F %s %s %s', expiry, worker, rest)
  end
end
for first = 1, #sets, 2 * FREED_AT_ONCE do
  call('HSET', key, unpack(sets, first, math.min(first + 2 * FREED_AT_ONCE - 1, #sets)))
end
if freed > 0 and text then
  local others, count, quiet = match(text, '^(.+) (%d+) (%d+)$')
  call('HSET', key, 'now', format('%s %d %s', others, math.max(count - freed, 0), quiet))
end
for at = 2, freed > 0 and #KEYS or 0 do -- the next admission becomes the trial
  if is_freed['@' .. (call('HGET', KEYS[at], 'trial') or '')] then
    call('HDEL', KEYS[at], 'trial', 'trial_until')
  end
end
return { 1, OK, freed }
