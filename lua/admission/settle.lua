#!lua
-- @name admission/settle
-- @since 0.1.0
-- @summary Replaces a lease's estimate by the fact, exactly once; also releases (no request, no tokens).
-- @keys 1 lz zset 80min lease id -> when its record may be dropped
-- @keys 2 lh hash 80min lease id -> record, or S
-- @keys 3 window hash 27h counters of a window
-- @keys 4 flights zset 80min leases in flight in that window
-- @keys 5.. window,flights pair as_3_and_4 the next windows, in the order of the reservation
-- @args 1 lease_id text the operation id
-- @args 2 actual tokens what was used
-- @args 3 counts_request flag 1, or 0 when nothing was sent upstream
-- @args 4 day_id yyyymmdd 0 for a rolling day; used only when the lease is unknown
-- @args 5 day_end ms first instant after that day, 0 for a rolling one
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'settled'} the estimate was replaced; {1, 'reclaimed'} it had expired, corrected by the difference
-- @returns {1, 'late'} the lease was unknown, charged in full to the present
-- @returns {2, 'settled'} done before
-- @returns {0, 'day_stale', now_ms} nothing done: send the day of now_ms
-- @errors GW_BADARG
-- @idempotent by lease id, for 10 min
-- @complexity O(windows + log leases)
-- @slot {provider.account}
--@include lib/codes.lua
--@include lib/clock.lua
--@include lib/lease.lua
--@include lib/record.lua
--@include lib/correct.lua

local lease_id, actual, counts_request = ARGV[1], whole(2, 0), whole(3, 0)
local day_id, day_end = whole(4, 0), whole(5, 0)
local windows = (#KEYS - 2) / 2
if #ARGV ~= 6 or windows < 1 or windows % 1 ~= 0 or lease_id == '' or counts_request > 1 then
  bad('lease id, counts_request or the number of keys and arguments')
end
local now = clock_ms(whole(6, 0))

local text, touched = lease_find(KEYS[2], lease_id)
if text == 'S' then
  return { 2, SETTLED }
end
if not text and day_is_stale(day_id, day_end, now) then
  return { 0, DAY_STALE, now }
end
local lease = text and lease_read(text)
for n = 1, lease and windows or 0 do
  if #lease.places ~= windows or lease.places[n].name ~= KEYS[2 * n + 1] then
    bad('the windows are not those of the reservation')
  end
end

local code = lease and SETTLED or LATE
for n = 1, windows do
  local key, flights = KEYS[2 * n + 1], KEYS[2 * n + 2]
  if lease then
    local place, held, taken = lease.places[n], lease.estimate, 0
    if place.state == 'X' then
      code, held = RECLAIMED, lease.prompt
    else
      local removed = call('ZREM', flights, lease_id)
      taken = place.state == 'R' and removed or 0 -- a freed lease holds no slot any more
    end
    local values = place_get(place)
    local sets = { 'i', flights_left(values[1], flights, taken, now) }
    place_correct(place, values, counts_request - 1, actual - held, sets)
  elseif counts_request + actual > 0 then
    local values = window_now(key, day_id, now)
    local w = window_load(key, day_id, day_end, now, values)
    window_add(w, counts_request, actual, flights_left(values[1], flights, 0, now))
  end
end

lease_keep(KEYS[1], KEYS[2], lease_id, 'S', now + MARK_MS, touched, nil, now)
return { 1, code }
