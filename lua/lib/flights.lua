-- Leases in flight in a window: a sorted set beside it, lease id -> expiry; only that can tell which
-- have expired. A lease whose worker was found dead stands at minus its expiry: it holds no slot, and
-- expires all the same, when its score comes within `now` of zero. The window's field `i` =
-- '<count> <quiet>' saves the look: until `quiet` (ms) none of them expires, so that the count is kept
-- by adding and subtracting. 0: look at the next call.
local QUIET_NEVER = EXACT_MAX

-- Count and `quiet` from the field's text; nil when it is time to look.
local function flights_known(text, now)
  if text then
    local count, quiet = string.match(text, '(%S+) (%S+)')
    quiet = tonumber(quiet)
    if now < quiet then
      return tonumber(count), quiet
    end
  end
end

-- The same when leases were freed: the next to expire is the lowest above `now` or the highest below
-- minus `now`; what lies between has expired.
local function flights_look_freed(flights, now)
  local alive, freed = string.format('(%d', now), string.format('(-%d', now)
  local count = call('ZCOUNT', flights, alive, '+inf')
  if call('ZCARD', flights) > count + call('ZCOUNT', flights, '-inf', freed) then
    return count, 0
  end
  local first = call('ZRANGEBYSCORE', flights, alive, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  local last = call('ZREVRANGEBYSCORE', flights, freed, '-inf', 'WITHSCORES', 'LIMIT', '0', '1')
  return count, math.min(tonumber(first[2] or QUIET_NEVER), -tonumber(last[2]))
end

-- Count and `quiet` from the sorted set.
local function flights_look(flights, now)
  local first = call('ZRANGE', flights, '0', '0', 'WITHSCORES')
  if not first[1] then
    return 0, QUIET_NEVER
  end
  local expiry = tonumber(first[2])
  if expiry > now then
    return call('ZCARD', flights), expiry
  end
  if expiry < -now then
    return flights_look_freed(flights, now)
  end
  return call('ZCOUNT', flights, string.format('(%d', now), '+inf'), 0
end

-- The field after `taken` leases ended; `text` is the field before.
local function flights_left(text, flights, taken, now)
  local count, quiet = flights_known(text, now)
  if count then
    count = count - taken
    return string.format('%d %d', count > 0 and count or 0, quiet)
  end
  return string.format('%d %d', flights_look(flights, now))
end
