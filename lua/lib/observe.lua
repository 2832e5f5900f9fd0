-- Raising the counts of a window; inside admission/observe.lua.

-- By how much: until no more is left than the provider has, less what it may not have counted yet.
local function raised_by(dim, used, since)
  local left = dim.limit - used
  if dim.limit < 0 or dim.remaining < 0 or dim.hold == 0 or left <= dim.remaining then
    return 0
  end
  return left - math.max(dim.remaining - since, 0)
end

-- A calendar day can only be raised to its end.
local function day_holds(hold)
  return day < CALENDAR_MIN or now + hold >= ends - HOUR_MS
end

local function slot_add(name, bucket, raised, is_tokens)
  local text, place = slot_text(name)
  local slot_r, slot_t = slot_get(text, bucket, key)
  if is_tokens then
    slot_t = slot_t + raised
  else
    slot_r = slot_r + raised
  end
  place = place or #sets + 2
  sets[place - 1], sets[place] = name, slot_put(text, bucket, slot_r, slot_t, key)
end

local function raise_minute(raised, is_tokens, hold)
  local bucket = math.ceil((now + hold) / SECOND_MS) - SECONDS
  if bucket < s then
    bucket = math.max(bucket, s - SECONDS + 1)
    slot_add(slot_name('s', SECOND_FIELDS, bucket), bucket, raised, is_tokens)
  elseif is_tokens then
    t = t + raised
  else
    r = r + raised
  end
  if is_tokens then
    ts = ts + raised
  else
    rs = rs + raised
  end
end

local function raise_day(raised, is_tokens, hold)
  local bucket = math.ceil((now + hold) / HOUR_MS) - HOURS
  if day < CALENDAR_MIN and bucket < day then
    bucket = math.max(bucket, day - HOURS + 1)
    slot_add(slot_name('d', HOUR_FIELDS, bucket), bucket, raised, is_tokens)
  end
  if is_tokens then
    dts = dts + raised
  else
    drs = drs + raised
  end
end
