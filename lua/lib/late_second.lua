-- In which second of the minute something counts that is told late; inside lib/late.lua, lib/client_late.lua.
-- `slot` is that of a second, which says nothing here: then it is now. Or 'a' and its age in seconds.
local age = match(slot, '^a(%d+)$')
local told = age and math.floor(now / SECOND_MS) - age

-- Requests and tokens of the newest second `s` and of the minute, with `more_r` and `more_t` added to
-- the second that was told, as far as that still counts. `sets` gets an older second; it may hold it.
local function count_late(key, s, r, t, rs, ts, more_r, more_t, sets)
  if not told or told - s >= 0 then
    return r + more_r, t + more_t, rs + more_r, ts + more_t
  end
  if s - told >= SECONDS then
    return r, t, rs, ts
  end
  local name, place = slot_name('s', SECOND_FIELDS, told), #sets + 2
  local text
  for at = 1, #sets, 2 do
    if sets[at] == name then
      place, text = at + 1, sets[at + 1]
    end
  end
  text = text or call('HGET', key, name)
  local old_r, old_t = slot_get(text, told, key)
  sets[place - 1], sets[place] = name, slot_put(text, told, old_r + more_r, old_t + more_t, key)
  return r, t, rs + more_r, ts + more_t
end
