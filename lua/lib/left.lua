-- What has left a window since its last admission is still in its sums: a reader takes it off. A
-- window that is nearly full is asked for less, and must not look full for longer than it is.

-- The sums of ring `name` without what left when the newest bucket went from `from` to `to`.
local function without_left(key, name, fields, size, from, to, r, t)
  local buckets = to - from
  if buckets <= 0 or buckets >= size then -- nothing has left, or all: readers know that by the time
    return r, t
  end
  local first, last, left_r, left_t = from - size + 1, to - size, 0, 0
  local texts = slots_get(key, name, fields, first, last)
  for bucket = first, last do
    local text = texts[math.floor(bucket / 8)]
    if text and not slot_form(text) then -- other records are told all the same, and of this one what stands there
      return r, t
    end
    local slot_r, slot_t = slot_get(text, bucket, key)
    left_r, left_t = left_r + slot_r, left_t + slot_t
  end
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
