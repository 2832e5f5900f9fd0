-- For the ladder of lib/health_rest.lua, which includes it.

-- Whether our own count says that the day of some window is used up.
local function is_day_spent()
  local n = 0
  for rpd, tpd in string.gmatch(outcome.limits, '(-?%d+) (-?%d+)') do
    n = n + 1
    local _, _, _, _, _, _, ends, requests_day, tokens_day = match(writes[3 * n - 2] or '', READ)
    if ends and now < ends + 0 and ((rpd + 0 >= 0 and requests_day + 0 >= rpd + 0)
      or (tpd + 0 >= 0 and tokens_day + 0 >= tpd + 0)) then
      return true
    end
  end
  return false
end
