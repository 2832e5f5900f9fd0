-- What a lease took of its key's caps, corrected to the fact; inside admission/settle.
--@include lib/caps.lua
local key = KEYS[#KEYS]
local values, weight = call('HMGET', key, 'now', field), ARGV[last - 1] + 0
local day, day_ends, sent, weighted, month, month_ends, spent, quiet = match(values[1] or '', CAPS_READ)
if day and values[2] then
  local held, ended_at, of_day, of_month, estimate, prompt, of_lease = match(values[2], CAPS_LEASE)
  if not held then
    return { err = 'GW_UNREADABLE key ' .. #KEYS }
  end
  local more = actual - (held == 'X' and prompt or estimate)
  if of_day - day >= 0 then -- above: everything was called the present
    sent, weighted = math.max(sent + requests, 0), math.max(weighted + more * of_lease, 0)
  end
  if of_month - month >= 0 then
    spent = math.max(spent + more, 0)
  end
  is_old = is_old or now >= ended_at + 0
elseif values[1] and not day then
  return { err = 'GW_UNREADABLE key ' .. #KEYS }
elseif not lease and requests + 1 + actual > 0 then
--@include lib/caps_move.lua
  local is_new
  day, day_ends, sent, weighted, month, month_ends, spent, is_new = caps_move(now, day,
    (day_ends or 0) + 0, (sent or 0) + 0, (weighted or 0) + 0, month, (month_ends or 0) + 0,
    (spent or 0) + 0)
  sent, weighted, spent = sent + requests + 1, weighted + actual * weight, spent + actual
  quiet, caps_is_new = quiet or NEVER, is_new
else
  day = nil
end
caps_now = day and format(CAPS_WRITE, day, day_ends, sent, weighted, month, month_ends, spent, quiet)
