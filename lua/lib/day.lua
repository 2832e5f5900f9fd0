-- Moving the day to the present: a ring of hours (day id 0), or a calendar day, which the caller
-- computes because scripts know no time zones. Inside lib/present.lua.

-- As minute_move: period, end, sums, and whether they must be written at once. What the hour that is
-- over holds is what the sums hold beside the others.
local function hours_move(key, hour, ends, rs, ts, present, sets)
  if present <= hour and hour - present <= HOURS then
    return hour, ends, rs, ts, false
  end
  if present < hour then
    ring_restart(key, 'd', HOUR_FIELDS, HOURS, hour - HOURS + 1, present)
  elseif present - hour < HOURS then
    local first = hour + 1 - HOURS
    local old_r, old_t, text = slots_sum(key, 'd', HOUR_FIELDS, first, present - HOURS, hour)
    local kept_r, kept_t = 0, 0
    if present - HOURS < hour - 1 then
      kept_r, kept_t = slots_sum(key, 'd', HOUR_FIELDS, present - HOURS + 1, hour - 1)
    end
    sets[#sets + 1] = slot_name('d', HOUR_FIELDS, hour)
    sets[#sets + 1] = slot_put(text, hour, math.max(rs - old_r - kept_r, 0), math.max(ts - old_t - kept_t, 0), key)
    rs, ts = rs - old_r, ts - old_t
  else
    rs, ts = 0, 0
  end
  return present, (present + 1) * HOUR_MS, rs, ts, present < hour
end

-- The day of a window. The stored calendar day rules until it has ended, then the larger id: neither
-- a slow nor a fast clock of a caller can start a day twice. Where the kind of day was changed, what
-- is counted goes on counting in the present.
local function day_move(key, day, ends, rs, ts, day_id, day_end, now, sets)
  local is_calendar = day >= CALENDAR_MIN
  if day_id == 0 then
    local hour = math.floor(now / HOUR_MS)
    if is_calendar then
      ring_restart(key, 'd', HOUR_FIELDS, HOURS, day, hour)
      return hour, (hour + 1) * HOUR_MS, rs, ts, true
    end
    return hours_move(key, day, ends, rs, ts, hour, sets)
  end
  if not is_calendar then
    return day_id, day_end, rs, ts, false
  end
  if now < ends then
    return day, ends, rs, ts, false
  end
  if day_id > day then
    return day_id, day_end, 0, 0, false
  end
  return day, day_end, rs, ts, false
end
