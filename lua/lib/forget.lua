-- Forgets leases whose time is over, and renews TTLs of what went round (`lapped`): within a minute lz
-- cannot have run empty and lost its TTL, since leases stay for ten. Runs once a second at most, for
-- up to four times what was admitted in one (`moved` is the minute's): they cannot pile up, and no call
-- takes long.
local place = 15 + (moved - moved % 16) / 16
local due = call('ZRANGE', lz, format('%d', place), format('%d', place), 'WITHSCORES')
if due[2] and due[2] + 0 <= now then
  call('ZREMRANGEBYRANK', lz, '0', format('%d', place))
else
  call('ZREMRANGEBYSCORE', lz, '-inf', format('%d', now))
end
for _, key in ipairs(lapped or {}) do
  call('PEXPIRE', key, WINDOW_KEEP_MS)
  call('PEXPIRE', lz, KEEP_MS)
end
