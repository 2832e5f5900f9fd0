-- Moving a ring to the present, and telling when it will have room.
--@include lib/ring_back.lua

-- The ring as of `bucket`, from the texts of its head and of that bucket's slot: b, sums rs and ts,
-- and r and t of bucket b; `lap` when it went round since it was written. What left the ring is
-- only subtracted here: the next admission writes it.
local function ring_load(key, kind, bucket, head, text)
  local ring = { kind = kind, b = bucket, rs = 0, ts = 0, r = 0, t = 0, lap = true }
  if not head then
    return ring
  end
  local newest, rs, ts = triple_read(head)
  ring.lap = math.floor(newest / kind.size) ~= math.floor(bucket / kind.size)
  if bucket - newest < kind.size then -- else nothing of it is left
    ring.rs, ring.ts = rs, ts
  end
  if newest == bucket then
    ring.r, ring.t = slot_read(text, bucket)
  elseif newest == bucket - 1 then -- the most frequent step: the slot holds what leaves
    local r, t = slot_read(text, bucket - kind.size)
    ring.rs, ring.ts = rs - r, ts - t
  elseif newest > bucket then
    ring_step_back(key, ring, newest)
  elseif bucket - newest < kind.size then
    local first = newest + 1 - kind.size
    for at, leaving in ipairs(slots_get(key, kind, first, bucket - kind.size)) do
      local r, t = slot_read(leaving, first + at - 1)
      ring.rs, ring.ts = ring.rs - r, ring.ts - t
    end
  end
  return ring
end

-- Milliseconds until `need` requests (or tokens) have left the window; all of it when never.
local function ring_wait(key, ring, is_tokens, need, now)
  local kind, first = ring.kind, ring.b - ring.kind.size + 1
  local slots, freed, at = slots_get(key, kind, first, ring.b), 0, 0
  repeat
    at = at + 1
    local r, t = slot_read(slots[at], first + at - 1)
    freed = freed + (is_tokens and t or r)
  until freed >= need or at == kind.size
  return (ring.b + at) * kind.unit - now
end
