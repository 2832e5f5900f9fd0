-- Whether a field of a ring is what a script wrote; inside lib/slot.lua.

-- Ends the call because of what stands in `key`.
local function unreadable_key(key)
  for place, name in ipairs(KEYS) do
    if name == key then
      error({ err = 'GW_UNREADABLE key ' .. place })
    end
  end
end

-- How many bytes each bucket takes and the number of the eight, nothing where somebody else wrote.
local function slot_form(text)
  if #text > 10 then
    local size, eight = struct.unpack('<BI4', text)
    if (size == 6 or size == 9 or size == 14) and (#text - 5) % size == 0 and #text <= 5 + 8 * size then
      return size, eight
    end
  end
end

-- The same of a field of `key`, which must be readable.
local function slot_head(text, key)
  local size, eight = slot_form(text)
  if not size then
    unreadable_key(key)
  end
  return size, eight
end
