-- Leases of one slot. Three keys know a lease:
--   lh  hash        lease id -> record (below), or 'S' once settled
--   lz  sorted set  lease id -> when its record may be dropped (settled, or expired, + 10 min)
--   wl  sorted set, one beside each window: lease id -> expiry, only while it counts as in flight
-- A record reads: R est=1200 prompt=200 exp=1795000000000 worker=w1 <window>@<second>@<day>@<state>
-- with one place per window; day is h<hour> or d<yyyymmdd>; state R reserved, X reclaimed. The first
-- letter is X when every place is. lh also holds `_touched`, when the TTLs of lh and lz were renewed.
--@include lib/correct.lua
local MARK_MS = 600000 -- how long a settled or reclaimed lease is remembered
local LEASE_MAX_MS = 3600000
local KEEP_MS = LEASE_MAX_MS + MARK_MS + 600000 -- TTL of lh, lz and wl after their last write
local PRUNE_MAX = '8'
local TOUCH_MS = 60000

local function lease_write(lease)
  local head, text = 'X', ''
  for _, p in ipairs(lease.places) do
    text = text .. ' ' .. p.name .. '@' .. p.bucket .. '@' .. p.kind .. p.day .. '@' .. p.state
    head = p.state == 'R' and 'R' or head
  end
  return head .. ' est=' .. lease.estimate .. ' prompt=' .. lease.prompt .. ' exp=' .. lease.expiry
    .. ' worker=' .. lease.worker .. text
end

local function lease_read(text)
  local estimate, prompt, expiry, worker, rest =
    string.match(text, '^%u est=(%d+) prompt=(%d+) exp=(%d+) worker=(%S+) (.+)$')
  local lease = { estimate = tonumber(estimate), prompt = tonumber(prompt), expiry = expiry,
    worker = worker, places = {} }
  for name, bucket, kind, day, state in string.gmatch(rest, '(%S+)@(%d+)@(%a)(%d+)@(%u)') do
    lease.places[#lease.places + 1] = { name = name, bucket = tonumber(bucket), kind = kind,
      day = tonumber(day), state = state }
  end
  return lease
end

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
