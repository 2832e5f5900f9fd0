-- One attempt joins the statistics of its target; inside admission/settle. The hash:
--   now       '<bucket> <seven sums>' of the newest bucket of six hours: successes, failures, timeouts
--             among them, output tokens, latency, time to first byte (ms), how many have one
--   older     '<seven sums>' of the 27 buckets before it; edge: of the one before these
--   q0..q28   '<bucket> <seven sums>' of a bucket that is over, at its number modulo 29
-- Everything is weighted: 2^(age / -2 days), as seen from the start of its bucket; older and edge as seen
-- from the newest bucket's. So an attempt is added without a look at the others.
-- `core/routing/statistics.py` is the rule.
local BUCKET_MS, HALF_LIFE_MS = 21600000, 172800000
local EIGHT = '^(%d+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$'

local stats = KEYS[#KEYS]
local text, present = call('HGET', stats, 'now'), (now - now % BUCKET_MS) / BUCKET_MS
local bucket, s, f, t, tok, lat, fb, fbs = match(text or '', EIGHT)
if not bucket or (bucket + 0 ~= present and bucket - present ~= 1) then -- 1: the clock stepped back
--@include lib/statistics_roll.lua
  bucket, s, f, t, tok, lat, fb, fbs = present, 0, 0, 0, 0, 0, 0, 0
end
local w = 2 ^ ((now - bucket * BUCKET_MS) / HALF_LIFE_MS)
call('HSET', stats, 'now', format('%d %.10g %.10g %.10g %.10g %.10g %.10g %.10g', bucket, s + w * add_s,
  f + w * add_f, t + w * add_t, tok + w * add_tok, lat + w * add_lat, fb + w * add_fb, fbs + w * add_fbs))
