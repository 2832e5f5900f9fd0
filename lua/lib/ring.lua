-- Rings: `name` is s or d, `fields` in how many fields its buckets are. Only in branches that are seldom taken.
--@include lib/slot.lua

-- The texts of the fields of buckets `first` to `last`, each at its eight; of `also`, too.
local function slots_get(key, name, fields, first, last, also)
  local names, texts, from = {}, {}, math.floor(first / 8)
  for eight = from, math.floor(last / 8) do
    names[#names + 1] = name .. eight % fields
  end
  local known = #names
  names[known + 1] = also and slot_name(name, fields, also)
  for at, text in ipairs(names[1] and call('HMGET', key, unpack(names)) or {}) do
    texts[at > known and 'also' or from + at - 1] = text
  end
  return texts
end

local function slots_drop(key, name, fields)
  local names = {}
  for at = 1, fields do
    names[at] = name .. at - 1
  end
  call('HDEL', key, unpack(names))
end

-- What buckets `first` to `last` hold together, as far as they are stored; then the text of the field of `also`.
local function slots_sum(key, name, fields, first, last, also)
  local sum_r, sum_t, texts = 0, 0, slots_get(key, name, fields, first, last, also)
  for bucket = first, last do
    local r, t = slot_get(texts[math.floor(bucket / 8)], bucket)
    sum_r, sum_t = sum_r + r, sum_t + t
  end
  return sum_r, sum_t, texts.also
end
