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

local MOVED_AT_ONCE = 400 -- far from what unpack can do

-- Everything counted becomes the bucket `present`: the others go, and leases move with what they are
-- counted in. Else they would be settled out of what others count there, once time comes to it again.
-- What was counted before `oldest` had left; such a lease is put where nothing of it is corrected.
local function ring_restart(key, name, fields, size, oldest, present)
  local form = name == 's' and '^(%u %d+ %S+ )(%d+)( %d+ %d+ %d+ ?%d* ?%d*)$' or '^(%u %d+ %S+ %d+ )(%d+)( %d+ %d+)$'
  local flat, sets, names = call('HGETALL', key), {}, {}
  for at = 1, #flat, 2 do
    if string.byte(flat[at]) == 64 then -- @
      local head, bucket, tail = match(flat[at + 1], form)
      if not head then
        unreadable_key(key)
      end
      sets[#sets + 1] = flat[at]
      sets[#sets + 1] = head .. (bucket + 0 >= oldest and present or present - size) .. tail
    end
  end
  for first = 1, #sets, MOVED_AT_ONCE do
    call('HSET', key, unpack(sets, first, math.min(first + MOVED_AT_ONCE - 1, #sets)))
  end
  for at = 1, fields do
    names[at] = name .. at - 1
  end
  call('HDEL', key, unpack(names))
end

-- What buckets `first` to `last` hold together, as far as they are stored; then the text of the field of `also`.
local function slots_sum(key, name, fields, first, last, also)
  local sum_r, sum_t, texts = 0, 0, slots_get(key, name, fields, first, last, also)
  for bucket = first, last do
    local r, t = slot_get(texts[math.floor(bucket / 8)], bucket, key)
    sum_r, sum_t = sum_r + r, sum_t + t
  end
  return sum_r, sum_t, texts.also
end
