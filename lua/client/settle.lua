#!lua
-- @name client/settle
-- @since 0.1.0
-- @summary Replaces what a client's request held by what it used, exactly once; also releases.
-- @keys 1 cz zset 80min hold id -> when its record may be dropped
-- @keys 2 ch hash 80min hold id -> record, or S
-- @keys 3 client hash 32days counters of the client
-- @keys 4 flights zset 80min its holds in flight
-- @args 1 hold_id text the operation id
-- @args 2 tokens tokens used by all attempts of the request
-- @args 3 cost micro_usd of these tokens
-- @args 4 counts_request flag 1, or 0 when nothing was sent upstream
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'settled'} the estimate was replaced; {1, 'reclaimed'} it had expired, corrected by the difference
-- @returns {1, 'late'} the hold was unknown, charged in full to the present
-- @returns {2, 'settled'} done before
-- @errors GW_BADARG
-- @idempotent by hold id, for 10 min
-- @complexity O(log holds)
-- @slot {client}
--@include lib/codes.lua
--@include lib/clock.lua
--@include lib/hold.lua

local hold_id, tokens, cost, counts_request = ARGV[1], whole(2, 0), whole(3, 0), whole(4, 0)
local now = clock_ms(whole(5, 0))
if #KEYS ~= 4 or #ARGV ~= 5 or hold_id == '' or counts_request > 1 then
  bad('hold id, counts_request or the number of keys and arguments')
end
local key, flights = KEYS[3], KEYS[4]

local text, touched = lease_find(KEYS[2], hold_id)
if text == 'S' then
  return { 2, SETTLED }
end

local code = LATE
if text then
  local hold, taken = lease_read(text), 0
  local place, usd = hold.places[1], hold.places[2]
  local held, held_cost = hold.estimate, usd.bucket
  if place.state == 'X' then
    code, held, held_cost = RECLAIMED, hold.prompt, usd.day
  else
    local removed = call('ZREM', flights, hold_id)
    code, taken = SETTLED, place.state == 'R' and removed or 0 -- a freed one has no slot any more
  end
  local values = client_get(key, place.bucket)
  hold_correct(place, values, counts_request - 1, tokens - held, cost - held_cost,
    { 'i', flights_left(values[1], flights, taken, now) })
elseif counts_request + tokens + cost > 0 then
  local second = math.floor(now / MINUTE.unit)
  local values = client_get(key, second)
  local m = ring_load(key, MINUTE, second, values[2], values[3])
  client_add(key, m, month_of(values[4], now), counts_request, tokens, cost,
    flights_left(values[1], flights, 0, now))
end

lease_keep(KEYS[1], KEYS[2], hold_id, 'S', now + MARK_MS, touched, nil, now)
return { 1, code }
