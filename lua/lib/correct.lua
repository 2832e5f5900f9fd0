-- Correcting what a lease put into a window, in the buckets where it was put.
--@include lib/ring.lua

local function least_zero(value)
  return value > 0 and value or 0
end

-- One ring's new values, appended to `sets`; nothing when the bucket has left the ring. `values`
-- holds b, rs, ts and the bucket's own r and t from index `at` on. A bucket newer than the ring was
-- merged into its newest one when the clock stepped far back.
local function ring_correct(key, kind, values, at, bucket, requests, tokens, sets)
  local b = tonumber(values[at])
  if not b or bucket <= b - kind.size then
    return
  end
  local r, t = tonumber(values[at + 3] or 0), tonumber(values[at + 4] or 0)
  if bucket > b then
    local merged = call('HMGET', key, unpack(ring_names(kind, b, b)))
    bucket, r, t = b, tonumber(merged[1] or 0), tonumber(merged[2] or 0)
  end
  local r_new, t_new = least_zero(r + requests), least_zero(t + tokens)
  local slot, n = bucket % kind.size, #sets
  sets[n + 1], sets[n + 2] = kind.p .. 'rs', tonumber(values[at + 1]) + r_new - r
  sets[n + 3], sets[n + 4] = kind.p .. 'ts', tonumber(values[at + 2]) + t_new - t
  sets[n + 5], sets[n + 6] = kind.p .. 'r' .. slot, r_new
  sets[n + 7], sets[n + 8] = kind.p .. 't' .. slot, t_new
end

-- Adds `requests` and `tokens` (both may be negative) where `place` counted, never below zero, and
-- sets what is in flight. A window that is gone stays gone: nothing of it limits anyone.
local function window_correct(place, requests, tokens, in_flight)
  local key, day = place.name, place.day
  local s, h = place.bucket % MINUTE.size, day % HOURS.size
  local fields = { 'b', 'rs', 'ts', 'r' .. s, 't' .. s }
  if place.kind == 'h' then
    fields[6], fields[7], fields[8], fields[9], fields[10] = 'hb', 'hrs', 'hts', 'hr' .. h, 'ht' .. h
  else
    fields[6], fields[7], fields[8] = 'd', 'dr', 'dt'
  end
  local values = call('HMGET', key, unpack(fields))
  if not values[1] then
    return
  end
  local sets = { 'i', in_flight }
  ring_correct(key, MINUTE, values, 1, place.bucket, requests, tokens, sets)
  if place.kind == 'h' then
    ring_correct(key, HOURS, values, 6, day, requests, tokens, sets)
  elseif tonumber(values[6]) == day then
    sets[#sets + 1], sets[#sets + 2] = 'dr', least_zero(tonumber(values[7]) + requests)
    sets[#sets + 1], sets[#sets + 2] = 'dt', least_zero(tonumber(values[8]) + tokens)
  end
  call('HSET', key, unpack(sets))
end
