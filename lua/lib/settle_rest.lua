-- What some settlements write besides their windows: caps, an hour that is over, a lease that had
-- expired; inside admission/settle.
if caps_now then
  call('HSET', KEYS[#KEYS], 'now', caps_now)
  call('HDEL', KEYS[#KEYS], field)
  if caps_is_new then
    call('PEXPIRE', KEYS[#KEYS], CLIENT_KEEP_MS)
  end
end
for _, one in ipairs(hour_writes or {}) do
  call('HSET', one[1], one[2], one[3])
end
if is_old then
  call('ZADD', lz, format('%d', now + MARK_MS), lease_id)
  call('PEXPIRE', lz, KEEP_MS)
end
