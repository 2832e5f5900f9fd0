-- Buckets of a ring that are over, eight in a field: lib/window.lua has their form.
--@include lib/slot_head.lua
local NARROW, MIDDLE, WIDE = '<I2I4', '<I4I5', '<I7I7' -- requests and tokens of 6, 9 and 14 bytes

local function slot_name(name, fields, bucket)
  return name .. (bucket - bucket % 8) / 8 % fields
end

-- Requests and tokens of `bucket` by the text of its field in `key`: none when other eight are there.
local function slot_get(text, bucket, key)
  if text then
    local size, eight = slot_head(text, key)
    local place = bucket % 8
    if eight * 8 + place - bucket == 0 then
      local at = 6 + size * place
      if at < #text then
        local r, t = struct.unpack(size == 6 and NARROW or size == 9 and MIDDLE or WIDE, text, at)
        return r, t
      end
    end
  end
  return 0, 0
end

-- The text of the field when `bucket` holds `r` and `t`. Other eight buckets that it held have left.
local function slot_put(text, bucket, r, t, key)
  local place, size, eight = bucket % 8, 0, nil
  if text then
    size, eight = slot_head(text, key)
  end
  local least = (r < 65536 and t < 4294967296) and 6 or (r < 4294967296 and t < 1099511627776) and 9 or 14
  local form = least == 6 and NARROW or least == 9 and MIDDLE or WIDE
  if not eight or eight * 8 + place - bucket ~= 0 then
    size, text = least, struct.pack('<BI4', least, (bucket - place) / 8)
  elseif least > size then
    local wider = { struct.pack('<BI4', least, eight) }
    for other = eight * 8, eight * 8 + (#text - 5) / size - 1 do
      local held_r, held_t = slot_get(text, other, key)
      wider[#wider + 1] = struct.pack(form, held_r, held_t)
    end
    size, text = least, table.concat(wider)
  elseif least < size then
    form = size == 9 and MIDDLE or WIDE
  end
  local at = 6 + size * place
  if #text < at - 1 then
    text = text .. string.rep('\0', at - 1 - #text)
  end
  return string.sub(text, 1, at - 1)
    .. struct.pack(form, math.min(r, EXACT_MAX), math.min(t, EXACT_MAX)) .. string.sub(text, at + size)
end
