-- Taking back what expired leases hold in one window.
--@include lib/lease.lua
--@include lib/record.lua
--@include lib/correct.lua

-- Marks the lease reclaimed in `window` and returns its estimate there, except the prompt: the
-- request and its prompt probably reached the provider.
local function reclaim_place(lh, id, text, window)
  local lease = lease_read(text)
  for _, place in ipairs(lease.places) do
    if place.name == window and place.state ~= 'X' then
      place.state = 'X'
      place_correct(place, place_get(place), 0, lease.prompt - lease.estimate, {})
      call('HSET', lh, id, lease_write(lease))
    end
  end
end

-- Reclaims at most `budget` expired leases of `window` and tells how many. A lease of several windows
-- is reclaimed in each of them separately, by calls that declare that window, so that no call touches
-- a key it did not name.
local function reclaim(lh, window, flights, now, budget)
  if budget == 0 then
    return 0
  end
  local ids = call('ZRANGEBYSCORE', flights, string.format('-%d', now), string.format('%d', now),
    'LIMIT', '0', budget)
  if #ids == 0 then
    return 0
  end
  call('ZREM', flights, unpack(ids))
  for _, id in ipairs(ids) do
    local text = call('HGET', lh, id)
    if text and text ~= 'S' then
      reclaim_place(lh, id, text, window)
    end
  end
  if call('HEXISTS', window, 'm') == 1 then
    call('HSET', window, 'i', '0 0') -- a refusal writes no more; the next call looks
  end
  return #ids
end
