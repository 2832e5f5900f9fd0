-- A hold that the client's counters do not know; inside client/settle.
if call('ZSCORE', cz, hold_id) then
  return { 2, SETTLED }
end
local sets, is_lap
local second = math.floor(now / SECOND_MS)
local s, r, t, rs, ts, month, ends, used, spent, count, quiet = match(values[1] or '', READ)
if values[1] and not s then
  return { err = 'GW_UNREADABLE key 2' }
end
--@include lib/client_move.lua
--@include lib/late_second.lua
if requests + 1 + actual + cost > 0 then
  r, t, rs, ts = count_late(key, s, r, t, rs, ts, requests + 1, actual, sets)
  call('HSET', key, 'now', format(WRITE, s, r, t, rs, ts, month, ends, used + actual, spent + cost,
    count, quiet), unpack(sets))
  if is_lap then
    call('PEXPIRE', key, CLIENT_KEEP_MS)
  end
end
call('ZADD', cz, format('%d', now + MARK_MS), hold_id)
call('PEXPIRE', cz, KEEP_MS)
do return { 1, LATE } end
