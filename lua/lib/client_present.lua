-- The counters of a client as of `now`, when that is not simply what is stored; inside client/hold.
--@include lib/slot.lua
if text and not s then
  return { err = 'GW_UNREADABLE key 2' }
end
if s and (now >= quiet + 0 or s - second > SECONDS) then -- something is written at once
  is_known = call('ZSCORE', cz, hold_id)
  if not is_known and now >= quiet + 0 then
--@include lib/expire.lua
    s, r, t, rs, ts, month, ends, used, spent, count, quiet = match(expire(key, now, 2), READ)
  end
end
--@include lib/client_move.lua
