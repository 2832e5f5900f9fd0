-- Taking back what expired leases hold in one window.
--@include lib/lease.lua

-- Marks the lease reclaimed in `window` and returns its estimate there, except the prompt: the
-- request and its prompt probably reached the provider.
local function reclaim_place(lh, id, text, window, in_flight)
  local lease = lease_read(text)
  for _, place in ipairs(lease.places) do
    if place.name == window and place.state == 'R' then
      place.state = 'X'
      window_correct(place, 0, lease.prompt - lease.estimate, in_flight)
      call('HSET', lh, id, lease_write(lease))
    end
  end
end

-- Reclaims at most `budget` expired leases of `window`; tells how many, and how many are in flight. A
-- lease of several windows is reclaimed in each of them separately, by calls that declare that window, so that no
-- call touches a key it did not name.
local function reclaim(lh, window, wl, now_text, budget)
  if budget == 0 then
    return 0, lease_count(wl, now_text)
  end
  local ids = call('ZRANGEBYSCORE', wl, '-inf', now_text, 'LIMIT', '0', budget)
  if #ids == 0 then
    return 0, call('ZCARD', wl)
  end
  call('ZREM', wl, unpack(ids))
  local in_flight = lease_count(wl, now_text)
  for _, id in ipairs(ids) do
    local text = call('HGET', lh, id)
    if text and text ~= 'S' then
      reclaim_place(lh, id, text, window, in_flight)
    end
  end
  return #ids, in_flight
end
