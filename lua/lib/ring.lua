-- A conservative ring: every bucket that may still hold something of the last window counts whole,
-- so no span of that length ever holds more than the limit. Fields of the window's hash, with `p`
-- the prefix of the ring: p..'b' newest bucket number, p..'rs' and p..'ts' sums of requests and
-- tokens, p..'r'..slot and p..'t'..slot the buckets; slot = bucket number modulo size.
local MINUTE = { p = '', size = 61, unit = 1000 } -- 60 s in seconds, and one guard
local HOURS = { p = 'h', size = 25, unit = 3600000 } -- 24 h in hours, and one guard

-- A ring from its five values as read for `bucket`: b, rs, ts, r, t.
local function ring_of(kind, bucket, values, at)
  return {
    kind = kind,
    bucket = bucket,
    b = tonumber(values[at]),
    rs = tonumber(values[at + 1] or 0),
    ts = tonumber(values[at + 2] or 0),
    r = tonumber(values[at + 3] or 0),
    t = tonumber(values[at + 4] or 0),
  }
end

-- The names of the buckets from number `first` to `last`, requests and tokens in turn.
local function ring_names(kind, first, last)
  local names = {}
  for bucket = first, last do
    local slot = bucket % kind.size
    names[#names + 1] = kind.p .. 'r' .. slot
    names[#names + 1] = kind.p .. 't' .. slot
  end
  return names
end

-- The clock stepped back. By at most one ring: stay in the newest bucket until time catches up. By
-- more: call everything counted "now". Either way nothing is forgotten early.
local function ring_step_back(key, ring)
  local kind, p = ring.kind, ring.kind.p
  if ring.b - ring.bucket > kind.size then
    call('HDEL', key, unpack(ring_names(kind, 0, kind.size - 1)))
    ring.b, ring.r, ring.t = ring.bucket, ring.rs, ring.ts
    local slot = ring.b % kind.size
    call('HSET', key, p .. 'b', ring.b, p .. 'r' .. slot, ring.r, p .. 't' .. slot, ring.t)
    return
  end
  ring.bucket = ring.b
  local slot = ring.b % kind.size
  local values = call('HMGET', key, p .. 'r' .. slot, p .. 't' .. slot)
  ring.r, ring.t = tonumber(values[1] or 0), tonumber(values[2] or 0)
end
