-- The newest bucket is over, or there is none yet; inside admission/tally. At most once in six hours.
local BUCKETS, STATS_KEEP_MS = 28, 691200000 -- 8 days
local BYTES, FIELD_BYTES, SEVEN = 14, 98, '>HHHHHHH' -- of a bucket that is over; of seven of them
local STEPS, ONE_AT, CODE_MAX = 2000, 1000, 65535 -- codes for each factor of e; that of 1

-- A sum in 16 bits: within 0.025 % from 0.61 to 1e14, and 0 is exact.
local function coded(sum)
  sum = sum + 0
  if sum > 0 then
    return math.min(math.max(math.floor(math.log(sum) * STEPS + ONE_AT + 0.5), 1), CODE_MAX)
  end
  return 0
end

local ago, past = bucket and present - bucket, '' -- what is over, the latest first
if ago and ago >= 0 then
  local held = call('HMGET', stats, 'p0', 'p1', 'p2', 'p3')
  past = (held[1] or '') .. (held[2] or '') .. (held[3] or '') .. (held[4] or '')
  if #past % BYTES ~= 0 then
    unreadable(1)
  end
  local newest = struct.pack(SEVEN, coded(s), coded(f), coded(t), coded(tok), coded(lat), coded(fb), coded(fbs))
  past = ago > BUCKETS and '' or string.rep('\0', BYTES * (ago - 1)) .. newest .. past
  past = string.sub(past, 1, BYTES * BUCKETS)
end

local sums = { { 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0 } } -- of older and edge
for age = 1, #past / BYTES do
  local codes, into = { struct.unpack(SEVEN, past, BYTES * (age - 1) + 1) }, sums[age < BUCKETS and 1 or 2]
  for n = 1, 7 do
    if codes[n] > 0 then
      into[n] = into[n] + math.exp((codes[n] - ONE_AT) / STEPS) * 2 ^ (-age * BUCKET_MS / HALF_LIFE_MS)
    end
  end
end

if ago and ago < 0 then -- the clock was far ahead: what it wrote has no age
  call('DEL', stats)
elseif ago and ago > BUCKETS then
  call('HDEL', stats, 'p0', 'p1', 'p2', 'p3')
end
for first = 1, #past, FIELD_BYTES do
  call('HSET', stats, 'p' .. (first - 1) / FIELD_BYTES, string.sub(past, first, first + FIELD_BYTES - 1))
end
for n, name in ipairs({ 'older', 'edge' }) do
  call('HSET', stats, name, format('%.10g %.10g %.10g %.10g %.10g %.10g %.10g', unpack(sums[n])))
end
call('PEXPIRE', stats, math.max(STATS_KEEP_MS, month_ends - now)) -- the month's tokens are needed to its end
