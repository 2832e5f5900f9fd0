-- Leases of one slot. Three keys know a lease:
--   lh  hash        lease id -> record (lib/record.lua), or 'S' once settled
--   lz  sorted set  lease id -> when its record may be dropped (settled, or expired, + 10 min)
--   wl  sorted set, one beside each window: lib/flights.lua
-- lh also holds `_touched`: when the TTLs of lh and lz were renewed, and `_pruned`: when no record
-- was left whose time is over.
local MARK_MS = 600000 -- how long a settled or reclaimed lease is remembered
local LEASE_MAX_MS = 3600000
local KEEP_MS = LEASE_MAX_MS + MARK_MS + 600000 -- TTL of lh, lz and wl after their last write
local TOUCH_MS = 60000
local PRUNE_MS = 1000
local PRUNE_MAX = 8

-- Whether `every` ms have passed since `at`; also when the clock is now before it.
local function is_due(at, every, now)
  return now < at or now - at >= every
end

-- What is known of a lease, and the two times above.
local function lease_find(lh, id)
  local values = call('HMGET', lh, id, '_touched', '_pruned')
  return values[1], tonumber(values[2] or 0), tonumber(values[3] or 0)
end

-- Forgets at most PRUNE_MAX records whose time is over; tells whether that was all. Each admission
-- adds one record and, once a second or while any are left, takes up to eight: they cannot pile up.
local function lease_prune(lz, lh, now)
  local ids = call('ZRANGEBYSCORE', lz, '-inf', string.format('%d', now), 'LIMIT', '0', PRUNE_MAX)
  if #ids > 0 then
    call('HDEL', lh, unpack(ids))
    call('ZREM', lz, unpack(ids))
  end
  return #ids < PRUNE_MAX
end

-- Stores a record until `drop_at`. TTLs are renewed once a minute: within that time lz cannot have
-- run empty and lost its TTL, since records stay for ten.
local function lease_keep(lz, lh, id, record, drop_at, touched, pruned, now)
  local sets = { id, record }
  if pruned then
    sets[3], sets[4] = '_pruned', string.format('%d', pruned)
  end
  local renews = is_due(touched, TOUCH_MS, now)
  if renews then
    sets[#sets + 1], sets[#sets + 2] = '_touched', string.format('%d', now)
  end
  call('ZADD', lz, string.format('%d', drop_at), id)
  call('HSET', lh, unpack(sets))
  if renews then
    call('PEXPIRE', lh, KEEP_MS)
    call('PEXPIRE', lz, KEEP_MS)
  end
end
