-- The window as of `now`, when that is not simply what is stored. `text` is its field `now`, or nil.
-- Gives the eleven values, then what is to be written along with them, and whether to renew the TTL.
--@include lib/minute.lua

local function present(key, text, day_id, day_end, now)
  local second, sets = math.floor(now / SECOND_MS), {}
  if not text then
    local day, ends = day_id, day_end
    if day_id == 0 then
      day = math.floor(now / HOUR_MS)
      ends = (day + 1) * HOUR_MS
    end
    return second, 0, 0, 0, 0, day, ends, 0, 0, 0, NEVER, sets, true
  end
  local s, r, t, rs, ts, day, ends, drs, dts, count, quiet = match(text, READ)
  local is_lap, is_urgent, must
  s, day = s + 0, day + 0
  local is_behind = second < s
  s, r, t, rs, ts, is_lap, is_urgent = minute_move(key, s, r + 0, t + 0, rs + 0, ts + 0, second, sets)
  if now >= ends + 0 or is_behind or (day < CALENDAR_MIN) ~= (day_id == 0) then
--@include lib/day.lua
    day, ends, drs, dts, must =
      day_move(key, day, ends + 0, drs + 0, dts + 0, day_id, day_end, now, sets)
  end
  if is_urgent or must then
    call('HSET', key, 'now', format(WRITE, s, r, t, rs, ts, day, ends, drs, dts, count, quiet), unpack(sets))
  end
  return s, r, t, rs, ts, day, ends, drs + 0, dts + 0, count + 0, quiet + 0, sets, is_lap
end
