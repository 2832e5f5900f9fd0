-- A window that is not simply what is stored, as of `now`; inside admission/reserve.
--@include lib/present.lua
if text and not s then
  return { err = 'GW_UNREADABLE key ' .. n + 3 }
end
if s and (now >= quiet + 0 or s - second > SECONDS) then -- something is written at once
  if call('ZSCORE', lz, lease_id) then
    return { 2, call('HEXISTS', KEYS[4], field) == 1 and OK or SETTLED, -1, -1, 0 }
  end
  if now >= quiet + 0 then
--@include lib/expire.lua
    text = expire(key, now, n + 3)
  end
end
local is_lap
s, r, t, rs, ts, day, ends, drs, dts, count, quiet, sets, is_lap =
  present(key, text, day_id, day_end, now)
if is_lap then
  lapped = lapped or {}
  lapped[#lapped + 1] = key
end
moved = (n == 1 or is_lap) and rs or moved
