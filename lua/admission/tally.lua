#!lua
-- @name admission/tally
-- @since 0.1.0
-- @summary Adds what a worker has seen of a target to its statistics.
-- @keys 1 stats hash 31days statistics of the target; to the end of the month, at least 8 days
-- @args 1 successes count attempts that gave the answer
-- @args 2 failures count timeouts among them
-- @args 3 timeouts count attempts that were given up
-- @args 4 output_tokens tokens of successes
-- @args 5 latency ms of successes and timeouts together
-- @args 6 first_byte ms of those that have one, together
-- @args 7 first_bytes count how many have one
-- @args 8 month_tokens tokens input and output, for the present month
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok'}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: a call whose outcome is unknown is not repeated
-- @complexity O(1), O(28) once in six hours
-- @slot {provider.account}
-- The hash:
--   now       '<bucket> <seven sums>' of the newest bucket of six hours: successes, failures, timeouts
--             among them, output tokens, latency, time to first byte (ms), how many have one
--   older     '<seven sums>' of the 27 buckets before it; edge: of the one before these
--   p0..p3    the same of the 28 buckets before it one by one, the latest first, seven in each field; a sum
--             takes two bytes (big-endian): 0, or 1000 + 2000 * ln(sum)
--   month     '<yyyymm> <tokens>' what was used since the month began, in UTC
-- Everything else is weighted: 2^(age / -2 days), as seen from the start of its bucket; older and edge as seen
-- from the newest bucket's. So adding needs no look at the others.
-- `core/routing/statistics.py` is the rule.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/month.lua

local match, format, stats = string.match, string.format, KEYS[1]
if #KEYS ~= 1 or #ARGV ~= 9 then
  bad('the number of keys and arguments do not match')
end
local add_s, add_f, add_t, add_tok = whole(1, 0), whole(2, 0), whole(3, 0), whole(4, 0)
local add_lat, add_fb, add_fbs, add_month = whole(5, 0), whole(6, 0), whole(7, 0), whole(8, 0)
local now = clock_ms(whole(9, 0))
local BUCKET_MS, HALF_LIFE_MS = 21600000, 172800000
local EIGHT = '^(%d+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$'

local values, present = call('HMGET', stats, 'now', 'month'), (now - now % BUCKET_MS) / BUCKET_MS
local text, month, month_ends = values[1], month_at(now)
local of, month_tokens = match(values[2] or '', '^(%d+) (%d+)$')
local bucket, s, f, t, tok, lat, fb, fbs = match(text or '', EIGHT)
if text and not (bucket and tonumber(s) and tonumber(f) and tonumber(t) and tonumber(tok) and tonumber(lat)
  and tonumber(fb) and tonumber(fbs)) or (values[2] and not of) then
  unreadable(1)
end
if not bucket or (bucket + 0 ~= present and bucket - present ~= 1) then -- 1: the clock stepped back
--@include lib/statistics_roll.lua
  bucket, s, f, t, tok, lat, fb, fbs = present, 0, 0, 0, 0, 0, 0, 0
end
local w = 2 ^ ((now - bucket * BUCKET_MS) / HALF_LIFE_MS)
call('HSET', stats, 'now', format('%d %.10g %.10g %.10g %.10g %.10g %.10g %.10g', bucket, s + w * add_s,
  f + w * add_f, t + w * add_t, tok + w * add_tok, lat + w * add_lat, fb + w * add_fb, fbs + w * add_fbs))
if add_month > 0 then
  call('HSET', stats, 'month', format('%d %d', month, (of and of + 0 == month and month_tokens or 0) + add_month))
end
return { 1, OK }
