-- A lease that no window knows; inside admission/settle.
if call('ZSCORE', lz, lease_id) then
  return { 2, SETTLED }
end
if day_id > 0 and (day_end <= now or day_end > now + DAY_MAX_MS) then
  return { 0, DAY_STALE, now }
end
--@include lib/present.lua
--@include lib/late_second.lua
local counted, counts, laps = requests + 1 + actual > 0 and windows or 0, {}, {}
for n = 1, counted do -- before the first write
  local text = call('HGET', KEYS[n + 3], 'now')
  if text and not match(text, READ) then
    return { err = 'GW_UNREADABLE key ' .. n + 3 }
  end
end
for n = 1, counted do
  local key = KEYS[n + 3]
  local s, r, t, rs, ts, day, ends, drs, dts, count, quiet, sets, is_lap =
    present(key, call('HGET', key, 'now'), day_id, day_end, now)
  r, t, rs, ts = count_late(key, s, r, t, rs, ts, requests + 1, actual, sets)
  drs, dts = drs + requests + 1, dts + actual
  sets[#sets + 1], sets[#sets + 2] = 'now', format(WRITE, s, r, t, rs, ts, day, ends, drs, dts, count, quiet)
  counts[n], laps[n] = sets, is_lap
end
for n = 1, counted do
  call('HSET', KEYS[n + 3], unpack(counts[n]))
  if laps[n] then
    call('PEXPIRE', KEYS[n + 3], WINDOW_KEEP_MS)
  end
end
call('ZADD', lz, format('%d', now + MARK_MS), lease_id)
call('PEXPIRE', lz, KEEP_MS)
