-- What one expired lease reserved, but not the request and its prompt, goes back; inside lib/expire.lua.

local function least_zero(value)
  return value > 0 and value or 0
end

-- Takes `back` tokens out of the slot of `bucket`; tells how many there were to take.
local function slot_take(name, count, bucket, back)
  local slot = slot_name(name, count, bucket)
  local slot_r, slot_t = slot_get(fields[slot], bucket, key)
  if slot_t == 0 then
    return 0
  end
  local left = least_zero(slot_t - back)
  fields[slot] = slot_put(fields[slot], bucket, slot_r, left, key)
  changed[slot] = fields[slot]
  return slot_t - left
end

local function take_back(name, text)
  local second, period, estimate, prompt, cost, kept =
    match(text, '^%u %d+ %S+ (%d+) (%d+) (%d+) (%d+) ?(%d*) ?(%d*)$')
  second, period = second + 0, period + 0
  local back, taken = estimate - prompt, 0
  if second >= s then -- above only where an older worker has moved it
    taken = t - least_zero(t - back)
    t = t - taken
  elseif second > s - SECONDS then
    taken = slot_take('s', SECOND_FIELDS, second, back)
  end
  ts = least_zero(ts - taken)
  if cost ~= '' then -- a hold: tokens and money of a month
    if period == day then
      x, y = least_zero(x - back), least_zero(y - (cost - kept))
    end
  elseif period == day or (period > day and day < CALENDAR_MIN) then
    y = least_zero(y - back)
  elseif period > day - HOURS and day < CALENDAR_MIN then
    y = least_zero(y - slot_take('d', HOUR_FIELDS, period, back))
  end
  changed[name] = 'X' .. string.sub(text, 2)
end
