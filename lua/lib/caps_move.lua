-- Day and month of a key's caps as of `now`. What is stored rules until it has ended, so that a clock
-- that steps back and forth over its end cannot empty it twice; what ends too far ahead was written by
-- a clock that has been set back, and is called the present, with all that is counted.
--@include lib/month.lua
local DAY_MS, MONTH_MAX_MS = 86400000, 2678400000

-- Gives the seven values, and whether the day is another one than before.
local function caps_move(now, day, day_ends, requests, weighted, month, month_ends, tokens)
  local is_over = not day or now >= day_ends or day_ends > now + 2 * DAY_MS
  if not is_over then
    return day, day_ends, requests, weighted, month, month_ends, tokens, false
  end
  local this_month, ends, of_month = month_at(now)
  if not day or now >= day_ends then
    requests, weighted = 0, 0
  end
  if not month or now >= month_ends then
    tokens = 0
  end
  if not month or now >= month_ends or month_ends > now + 2 * MONTH_MAX_MS then
    month, month_ends = this_month, ends
  end
  return this_month * 100 + of_month, (math.floor(now / DAY_MS) + 1) * DAY_MS, requests, weighted,
    month, month_ends, tokens, true
end
