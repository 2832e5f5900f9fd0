-- Raising what is too low in a window; inside admission/observe.lua.
--@include lib/present.lua
local s, r, t, rs, ts, day, ends, drs, dts, count, quiet, sets, is_lap = present(key, text, day_id, day_end, now)
ends = ends + 0

-- The text of a field, also of one that is written only below.
local function slot_text(name)
  for at = 1, #sets, 2 do
    if sets[at] == name then
      return sets[at + 1], at + 1
    end
  end
  return call('HGET', key, name), nil
end
--@include lib/observe.lua

local since_r, since_t = r, t
for second = math.max(math.floor((now - age - DISPATCH_MS) / SECOND_MS), s - SECONDS + 1), s - 1 do
  local slot_r, slot_t = slot_get(slot_text(slot_name('s', SECOND_FIELDS, second)), second, key)
  since_r, since_t = since_r + slot_r, since_t + slot_t
end
local used, since, is_raised = { rs, ts, drs, dts }, { since_r, since_t, since_r, since_t }, false
for at, dim in ipairs(dims) do
  local raised, is_tokens = raised_by(dim, used[at], since[at]), at % 2 == 0
  -- Going round belongs to an admission: it renews what else must not be forgotten.
  if is_lap or (at > 2 and not day_holds(dim.hold)) then
    raised = 0
  end
  if raised > 0 then
    is_raised = true
    if at > 2 then
      raise_day(raised, is_tokens, dim.hold)
    else
      raise_minute(raised, is_tokens, dim.hold)
    end
  end
  told[3 * at - 2], told[3 * at - 1], told[3 * at] = raised, used[at], since[at]
end
if is_raised then
  call('HSET', key, 'now', format(WRITE, s, r, t, rs, ts, day, ends, drs, dts, count, quiet), unpack(sets))
end
