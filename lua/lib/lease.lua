-- Leases of one slot. Three keys know a lease:
--   lh  hash        lease id -> record (below), or 'S' once settled
--   lz  sorted set  lease id -> when its record may be dropped (settled, or expired, + 10 min)
--   wl  sorted set, one beside each window: lease id -> expiry, only while it counts as in flight
-- lh also holds `_touched`: when the TTLs of lh and lz were renewed.
--@include lib/record.lua
--@include lib/correct.lua
local MARK_MS = 600000 -- how long a settled or reclaimed lease is remembered
local LEASE_MAX_MS = 3600000
local KEEP_MS = LEASE_MAX_MS + MARK_MS + 600000 -- TTL of lh, lz and wl after their last write
local PRUNE_MAX = '8'
local TOUCH_MS = 60000

-- Forgets at most PRUNE_MAX records whose time is over; touches no window.
local function lease_prune(lz, lh, now_text)
  local ids = call('ZRANGEBYSCORE', lz, '-inf', now_text, 'LIMIT', '0', PRUNE_MAX)
  if #ids > 0 then
    call('HDEL', lh, unpack(ids))
    call('ZREM', lz, unpack(ids))
  end
end

-- What is known of a lease, and when the TTLs of lh and lz were last renewed.
local function lease_find(lh, id)
  local values = call('HMGET', lh, id, '_touched')
  return values[1], tonumber(values[2] or 0)
end

-- Stores a record until `drop_at`. TTLs are renewed once a minute: within that time lz cannot have run
-- empty and lost its TTL, since records stay for ten.
local function lease_keep(lz, lh, id, record, drop_at, touched, now)
  call('ZADD', lz, drop_at, id)
  if touched <= now and now - touched < TOUCH_MS then
    call('HSET', lh, id, record)
    return
  end
  call('HSET', lh, id, record, '_touched', now)
  call('PEXPIRE', lh, KEEP_MS)
  call('PEXPIRE', lz, KEEP_MS)
end

-- Leases in flight: members of wl that have not expired.
local function lease_count(wl, now_text)
  return call('ZCOUNT', wl, '(' .. now_text, '+inf')
end
