-- The newest bucket is over, or there is none yet; inside admission/tally. At most once in six hours.
local BUCKETS, SLOTS, STATS_KEEP_MS = 28, 29, 691200000 -- 8 days

local sums = { { 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0 } } -- of older and edge
local function join(held)
  local parts = { match(held, EIGHT) }
  local age = present - (parts[1] or present)
  local into = (age > 0 and age < BUCKETS and sums[1]) or (age == BUCKETS and sums[2])
  for n = 1, into and 7 or 0 do
    into[n] = into[n] + parts[n + 1] * 2 ^ (-age * BUCKET_MS / HALF_LIFE_MS)
  end
end

if bucket and bucket - present > 1 then -- the clock was far ahead: what it wrote has no age
  call('DEL', stats)
elseif bucket then
  call('HSET', stats, 'q' .. bucket % SLOTS, text)
  local flat = call('HGETALL', stats)
  for at = 1, #flat, 2 do
    if string.byte(flat[at]) == 113 then -- q
      join(flat[at + 1])
    end
  end
end
for n, name in ipairs({ 'older', 'edge' }) do
  call('HSET', stats, name, format('%.10g %.10g %.10g %.10g %.10g %.10g %.10g', unpack(sums[n])))
end
call('PEXPIRE', stats, math.max(STATS_KEEP_MS, month_ends - now)) -- the month's tokens are needed to its end
