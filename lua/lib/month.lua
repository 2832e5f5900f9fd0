-- Budgets of a calendar month in UTC. Field `month` of a client's hash:
-- '<yyyymm> <end> <tokens> <micro-USD>'; end (ms) is the first instant after the month. UTC, so that
-- the script can work it out itself and no caller's clock matters.
-- Codes equal the values of `core.limits.allowance.ClientGate`, as far as codes.lua lacks them.
local MONTHLY_TOKENS, MONTHLY_USD = 'monthly_tokens', 'monthly_usd'
local DAY_MS = 86400000

local function is_leap(year)
  return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

-- The month that contains `now`: id and end.
local function month_at(now)
  local days, year, month = math.floor(now / DAY_MS), 1970, 1
  while days >= (is_leap(year) and 366 or 365) do
    days, year = days - (is_leap(year) and 366 or 365), year + 1
  end
  local lengths = { 31, is_leap(year) and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
  while days >= lengths[month] do
    days, month = days - lengths[month], month + 1
  end
  return year * 100 + month, (math.floor(now / DAY_MS) - days + lengths[month]) * DAY_MS
end

local function month_read(text)
  local id, ends, tokens, cost = string.match(text, '(%S+) (%S+) (%S+) (%S+)')
  return { id = tonumber(id), ends = tonumber(ends), tokens = tonumber(tokens),
    cost = tonumber(cost) }
end

local function month_write(id, ends, tokens, cost)
  return string.format('%d %d %d %d', id, ends, tokens, cost)
end

-- The month of a client from its field. The stored month rules until it has ended, so that a clock
-- that steps back and forth over its end cannot empty it twice.
local function month_of(text, now)
  local month = text and month_read(text)
  if month and now < month.ends then
    return month
  end
  local id, ends = month_at(now)
  return { id = id, ends = ends, tokens = 0, cost = 0 }
end
