-- What has left a window since its last admission is still in its sums: a reader takes it off. A
-- window that is nearly full is asked for less, and must not look full for longer than it is.

-- The sums of ring `name` without what left when the newest bucket went from `from` to `to`.
local function without_left(key, name, fields, size, from, to, r, t)
  local buckets = to - from
  if buckets <= 0 or buckets >= size then -- nothing has left, or all: readers know that by the time
    return r, t
  end
  local left_r, left_t = slots_sum(key, name, fields, from - size + 1, to - size)
  return format('%d', math.max(r - left_r, 0)), format('%d', math.max(t - left_t, 0))
end

local function window_of(key, text)
  local s, r, t, rs, ts, period, ends, drs, dts, count, quiet = match(text, READ)
  if not s then
    return text -- nothing, or what only its reader can complain of
  end
  if rs + 0 > 0 then
    rs, ts = without_left(key, 's', SECOND_FIELDS, SECONDS, s + 0, math.floor(now / SECOND_MS), rs, ts)
  end
  if drs + 0 > 0 and period + 0 < CALENDAR_MIN then
    drs, dts = without_left(key, 'd', HOUR_FIELDS, HOURS, period + 0, math.floor(now / HOUR_MS), drs, dts)
  end
  return table.concat({ s, r, t, rs, ts, period, ends, drs, dts, count, quiet }, ' ')
end
