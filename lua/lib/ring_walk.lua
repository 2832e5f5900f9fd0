-- Moving a ring to the present, and telling when it will have room.
--@include lib/ring.lua

-- Drops the buckets that left the window since the ring was last touched; writes at once, because
-- pruning is allowed in a refusal too. Afterwards ring.b is the bucket that counts now.
local function ring_advance(key, ring)
  local kind, p, old, new = ring.kind, ring.kind.p, ring.b, ring.bucket
  ring.moved = old ~= new
  if not old or old == new then
    ring.b = new
    return
  end
  if old > new then
    return ring_step_back(key, ring)
  end
  local first = math.max(old + 1, new - kind.size + 1)
  local names = ring_names(kind, first, new)
  if first == old + 1 then
    local values = call('HMGET', key, unpack(names))
    for at = 1, #names, 2 do
      ring.rs = ring.rs - tonumber(values[at] or 0)
      ring.ts = ring.ts - tonumber(values[at + 1] or 0)
    end
  else
    ring.rs, ring.ts = 0, 0
  end
  call('HDEL', key, unpack(names))
  call('HSET', key, p .. 'b', new, p .. 'rs', ring.rs, p .. 'ts', ring.ts)
  ring.b, ring.r, ring.t = new, 0, 0
end

-- Milliseconds until `need` of field 'r' or 't' has left the window; all of it when it never will.
local function ring_wait(key, ring, field, need, now)
  local kind = ring.kind
  local names = {}
  for back = kind.size - 1, 0, -1 do
    names[#names + 1] = kind.p .. field .. (ring.b - back) % kind.size
  end
  local values = call('HMGET', key, unpack(names))
  local freed, at = 0, 0
  repeat
    at = at + 1
    freed = freed + tonumber(values[at] or 0)
  until freed >= need or at == kind.size
  return (ring.b + at) * kind.unit - now
end
