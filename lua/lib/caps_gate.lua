-- Gates of what the provider caps over all models of the key; inside admission/reserve.
--@include lib/caps.lua
local key = KEYS[#KEYS]
local rpd, tpd, monthly, weight = ARGV[last - 4] + 0, ARGV[last - 3] + 0, ARGV[last - 2] + 0, ARGV[last - 1] + 0
if not (rpd >= -1 and tpd >= -1 and monthly >= -1 and weight >= 0) or weight % 1 ~= 0 then
  return { err = 'GW_BADARG a cap' }
end
local text = call('HGET', key, 'now')
local day, day_ends, requests, weighted, month, month_ends, tokens, quiet = match(text or '', CAPS_READ)
if day and now >= quiet + 0 then
  if call('ZSCORE', lz, lease_id) then
    return { 2, call('HEXISTS', KEYS[4], field) == 1 and OK or SETTLED, -1, -1, 0 }
  end
--@include lib/caps_expire.lua
  day, day_ends, requests, weighted, month, month_ends, tokens, quiet =
    match(caps_expire(key, now), CAPS_READ)
end
if text and not day then
  return { err = 'GW_UNREADABLE key ' .. #KEYS }
end
if not day or now >= day_ends + 0 or day_ends - now > 86400000 then
--@include lib/caps_move.lua
  day, day_ends, requests, weighted, month, month_ends, tokens, caps_is_new = caps_move(now, day,
    (day_ends or 0) + 0, (requests or 0) + 0, (weighted or 0) + 0, month, (month_ends or 0) + 0,
    (tokens or 0) + 0)
end
requests, weighted, tokens = requests + 1, weighted + estimate * weight, tokens + estimate
if gate ~= TOO_LARGE then
  local function refuse(code, ms)
    if ms > wait then
      gate, scope, wait = code, windows + 2, ms
    end
  end
  if (tpd >= 0 and estimate * weight > tpd) or (monthly >= 0 and estimate > monthly) then
    gate, scope, wait = TOO_LARGE, windows + 2, 0
  else
    if rpd >= 0 and requests > rpd then
      refuse(DAILY_CAP, day_ends - now)
    end
    if tpd >= 0 and weighted > tpd then
      refuse(DAILY_TOKEN_CAP, day_ends - now)
    end
    if monthly >= 0 and tokens > monthly then
      refuse(MONTHLY_CAP, month_ends - now)
    end
  end
end
quiet = math.min((quiet or NEVER) + 0, expiry)
caps_now = format(CAPS_WRITE, day, day_ends, requests, weighted, month, month_ends, tokens, quiet)
caps_lease = head .. day .. ' ' .. month .. tail .. ' ' .. weight
