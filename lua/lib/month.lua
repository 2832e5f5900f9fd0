-- Calendar months in UTC, so that the script can work them out itself and no caller's clock matters.

local function is_leap(year)
  return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

-- The month that contains `now`: id (yyyymm), end, the first instant after it, and its day of `now`.
local function month_at(now)
  local day_ms = 86400000
  local days, year, month = math.floor(now / day_ms), 1970, 1
  while days >= (is_leap(year) and 366 or 365) do
    days, year = days - (is_leap(year) and 366 or 365), year + 1
  end
  local lengths = { 31, is_leap(year) and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
  while days >= lengths[month] do
    days, month = days - lengths[month], month + 1
  end
  return year * 100 + month, (math.floor(now / day_ms) - days + lengths[month]) * day_ms, days + 1
end
