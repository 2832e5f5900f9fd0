-- What a ring does when the clock steps back.
--@include lib/ring.lua

-- The clock stepped back. By at most one ring: stay in the newest bucket until time catches up. By
-- more: call everything counted "now", and write that at once, or it would be a new "now" each time.
-- Either way nothing is forgotten early.
local function ring_step_back(key, ring, newest)
  local kind, bucket = ring.kind, ring.b
  if newest - bucket <= kind.size then
    ring.b = newest
    ring.r, ring.t = slot_read(slots_get(key, kind, newest, newest)[1], newest)
    return
  end
  local names = {}
  for slot = 1, kind.size do
    names[slot] = kind.name .. slot - 1
  end
  call('HDEL', key, unpack(names))
  ring.r, ring.t = ring.rs, ring.ts
  local text = triple_write(bucket, ring.rs, ring.ts)
  call('HSET', key, kind.name, text, kind.name .. bucket % kind.size, text)
end
