-- What others are told of a provider, and what a reply says of it; inside lib/outage_record.lua.

local function outage_is_lately(at)
  return at > 0 and math.abs(now - at) < WITHIN_MS
end

-- Its state, for how long nobody may enter, and how many targets failed lately.
local function outage_standing(outage)
  local count = 0
  for _, one in ipairs(outage.failed) do
    count = count + (outage_is_lately(one.at) and 1 or 0)
  end
  local is_shut = outage.state == 'open' and outage.changed_at <= now
  return outage.state, is_shut and math.max(outage.until_at - now, 0) or 0, count
end

local function outage_tell(key, outage)
  local state, wait, count = outage_standing(outage)
  tell(string.format('provider %s %s %d %d %d', key, state, wait, count, now))
end
