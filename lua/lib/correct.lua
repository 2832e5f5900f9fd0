-- Correcting what a lease put into a window, in the buckets where it was put.
--@include lib/window.lua

local function least_zero(value)
  return value > 0 and value or 0
end

-- One ring's new values, appended to `sets`; nothing when the bucket has left the ring. A bucket
-- newer than the ring was merged into its newest one when the clock stepped far back.
local function ring_correct(key, kind, head, text, bucket, requests, tokens, sets)
  if not head then
    return
  end
  local newest, rs, ts = triple_read(head)
  if bucket <= newest - kind.size then
    return
  end
  if bucket > newest then
    bucket, text = newest, slots_get(key, kind, newest, newest)[1]
  end
  local r, t = slot_read(text, bucket)
  local r_new, t_new = least_zero(r + requests), least_zero(t + tokens)
  local n = #sets
  sets[n + 1], sets[n + 2] = kind.name, triple_write(newest, rs + r_new - r, ts + t_new - t)
  sets[n + 3], sets[n + 4] = kind.name .. bucket % kind.size, triple_write(bucket, r_new, t_new)
end

-- What is stored where `place` counted.
local function place_get(place)
  return window_get(place.name, place.bucket, place.kind == 'h' and place.day)
end

-- Adds `requests` and `tokens` (both may be negative) where `place` counted, never below zero.
-- `values` is from place_get; `sets` holds other fields to write. A window that is gone stays gone:
-- nothing of it limits anyone.
local function place_correct(place, values, requests, tokens, sets)
  local key, day = place.name, place.day
  if not values[2] then
    return
  end
  if requests ~= 0 or tokens ~= 0 then
    ring_correct(key, MINUTE, values[2], values[3], place.bucket, requests, tokens, sets)
    if place.kind == 'h' then
      ring_correct(key, HOURS, values[4], values[5], day, requests, tokens, sets)
    elseif values[4] then
      local d = day_read(values[4])
      if d.d == day then
        sets[#sets + 1] = 'd'
        sets[#sets + 1] = day_write(day, d.de, least_zero(d.r + requests), least_zero(d.t + tokens))
      end
    end
  end
  if sets[1] then
    call('HSET', key, unpack(sets))
  end
end
