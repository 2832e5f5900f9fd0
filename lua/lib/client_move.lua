-- Minute and month of a client as of `now`; inside client/hold and lib/client_late.lua.
--@include lib/minute.lua

sets = {}
if not s then
  s, r, t, rs, ts, count, quiet, is_lap = second, 0, 0, 0, 0, 0, NEVER, true
else
  local is_urgent
  s, r, t, rs, ts, is_lap, is_urgent =
    minute_move(key, s + 0, r + 0, t + 0, rs + 0, ts + 0, second, sets)
  if is_urgent then
    call('HSET', key, 'now', format(WRITE, s, r, t, rs, ts, month, ends, used, spent, count, quiet))
  end
end
-- The stored month rules until it has ended, so that a clock that steps back and forth over its end
-- cannot empty it twice.
if not ends or now >= ends + 0 then
--@include lib/month.lua
  month, ends = month_at(now)
  used, spent = 0, 0
end
