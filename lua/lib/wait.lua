-- When a ring will have room.

-- Milliseconds until `need` requests (or tokens) have left the ring whose newest bucket is `newest`;
-- all of it when never. `sets` has slots that are not stored yet.
local function ring_wait(key, name, size, unit, newest, is_tokens, need, now, sets)
  local names, first = {}, newest - size + 1
  for bucket = first, newest - 1 do
    names[#names + 1] = name .. bucket % size
  end
  local slots, freed, at = call('HMGET', key, unpack(names)), 0, 0
  for place = 1, #sets, 2 do
    if match(sets[place], '^%a') == name then
      slots[match(sets[place + 1], '^%d+') - first + 1] = sets[place + 1]
    end
  end
  repeat
    at = at + 1
    local bucket, requests, tokens = match(slots[at] or '', '^(%d+) (%d+) (%d+)$')
    if bucket and bucket - first + 1 == at then
      freed = freed + (is_tokens and tokens or requests)
    end
  until freed >= need or at == size -- the newest bucket is the last to leave
  return (newest + at) * unit - now
end
