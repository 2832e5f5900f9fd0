-- Taking back what expired leases hold of a key's caps; looks at every field of the hash, but only when
-- something may have expired.

-- Gives the field `now` after that, not moved to the present.
local function caps_expire(key, now)
  local flat, sets, gone, quiet = call('HGETALL', key), {}, {}, NEVER
  local day, day_ends, requests, weighted, month, month_ends, tokens =
    match(call('HGET', key, 'now'), CAPS_READ)
  for at = 1, #flat, 2 do
    local name = flat[at]
    local state, expiry, of_day, of_month, estimate, prompt, weight = match(flat[at + 1], CAPS_LEASE)
    if string.byte(name) == 64 then -- @
      if not expiry then
        error({ err = 'GW_UNREADABLE key ' .. #KEYS })
      end
      local drop_at = expiry + MARK_MS
      if state ~= 'X' and expiry + 0 <= now then
        local back = estimate - prompt
        if of_day - day >= 0 then
          weighted = math.max(weighted - back * weight, 0)
        end
        if of_month - month >= 0 then
          tokens = math.max(tokens - back, 0)
        end
        state = 'X'
        sets[#sets + 1], sets[#sets + 2] = name, 'X' .. string.sub(flat[at + 1], 2)
      end
      if state == 'X' and drop_at <= now then
        gone[#gone + 1] = name
      else
        quiet = math.min(quiet, state == 'X' and drop_at or expiry)
      end
    end
  end
  local text = format(CAPS_WRITE, day, day_ends, requests, weighted, month, month_ends, tokens, quiet)
  sets[#sets + 1], sets[#sets + 2] = 'now', text
  for first = 1, #sets, 400 do
    call('HSET', key, unpack(sets, first, math.min(first + 399, #sets)))
  end
  for first = 1, #gone, 400 do
    call('HDEL', key, unpack(gone, first, math.min(first + 399, #gone)))
  end
  return text
end
