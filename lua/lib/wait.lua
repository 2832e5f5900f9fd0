-- When a ring will have room.

-- Milliseconds until `need` requests (or tokens) have left the ring of `size` whose newest bucket is
-- `newest`; all of it when never. `sets` has fields that are not stored yet.
local function ring_wait(key, name, fields, size, unit, newest, is_tokens, need, now, sets)
  local names, first, freed = {}, newest - size + 1, 0
  local from = math.floor(first / 8)
  for eight = from, math.floor((newest - 1) / 8) do
    names[#names + 1] = name .. eight % fields
  end
  for at, text in ipairs(call('HMGET', key, unpack(names))) do
    for place = 1, #sets, 2 do
      text = sets[place] == names[at] and sets[place + 1] or text
    end
    local bytes, eight = 6, nil
    if text then
      bytes, eight = struct.unpack('<BI4', #text > 10 and text or '\0\0\0\0\0')
      if (bytes ~= 6 and bytes ~= 9 and bytes ~= 14) or (#text - 5) % bytes ~= 0 or #text > 5 + 8 * bytes then
        for place, known in ipairs(KEYS) do
          if known == key then
            error({ err = 'GW_UNREADABLE key ' .. place })
          end
        end
      end
    end
    if eight == from + at - 1 then
      local form = bytes == 6 and '<I2I4' or bytes == 9 and '<I4I5' or '<I7I7'
      for bucket = math.max(first, eight * 8), math.min(newest, eight * 8 + (#text - 5) / bytes) - 1 do
        local requests, tokens = struct.unpack(form, text, 6 + bytes * (bucket - eight * 8))
        freed = freed + (is_tokens and tokens or requests)
        if freed >= need then
          return (bucket + size) * unit - now
        end
      end
    end
  end
  return (newest + size) * unit - now -- the newest bucket is the last to leave
end
