-- Moving the minute to the present.
--@include lib/ring.lua

-- The minute as of `second`: s, r, t, rs, ts as in `now`, whether it went round since its TTL was
-- renewed, and whether everything was called "now". `sets` gets the second that is over, for the next
-- write. What left is only subtracted here.
-- When the clock stepped back by at most one ring, the newest second stays until time catches up. By
-- more: everything counted is "now", which must be written at once, or it would be a new "now" each
-- time. Either way nothing is forgotten early.
local function minute_move(key, s, r, t, rs, ts, second, sets)
  if second == s or (second < s and s - second <= SECONDS) then
    return s, r, t, rs, ts, false, false
  end
  if second < s then
    ring_restart(key, 's', SECOND_FIELDS, SECONDS, s - SECONDS + 1, second)
    return second, rs, ts, rs, ts, true, true
  end
  local is_lap = math.floor(s / SECONDS) ~= math.floor(second / SECONDS)
  if second - s >= SECONDS then
    return second, 0, 0, 0, 0, is_lap, false
  end
  local gone_r, gone_t, text = slots_sum(key, 's', SECOND_FIELDS, s + 1 - SECONDS, second - SECONDS, s)
  sets[#sets + 1] = slot_name('s', SECOND_FIELDS, s)
  sets[#sets + 1] = slot_put(text, s, r, t, key)
  return second, 0, 0, rs - gone_r, ts - gone_t, is_lap, false
end
