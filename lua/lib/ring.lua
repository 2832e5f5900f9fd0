-- Rings: `name` is m or h, `size` its number of buckets. Only in branches that are seldom taken.

-- The texts of the slots of buckets `first` to `last`.
local function slots_get(key, name, size, first, last)
  local names = {}
  for bucket = first, last do
    names[#names + 1] = name .. bucket % size
  end
  return call('HMGET', key, unpack(names))
end

-- Requests and tokens of `bucket` by the text of its slot: none when another bucket is there.
local function slot_read(text, bucket)
  local held, requests, tokens = match(text or '', '^(%d+) (%d+) (%d+)$')
  if held and held + 0 == bucket then
    return requests + 0, tokens + 0
  end
  return 0, 0
end

local function slots_drop(key, name, size)
  local names = {}
  for slot = 1, size do
    names[slot] = name .. slot - 1
  end
  call('HDEL', key, unpack(names))
end

-- What buckets `first` to `last` hold together, as far as they are stored.
local function slots_sum(key, name, size, first, last)
  local sum_r, sum_t = 0, 0
  for at, text in ipairs(slots_get(key, name, size, first, last)) do
    local r, t = slot_read(text, first + at - 1)
    sum_r, sum_t = sum_r + r, sum_t + t
  end
  return sum_r, sum_t
end
