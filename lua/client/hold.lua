#!lua
-- @name client/hold
-- @since 0.1.0
-- @summary Holds one request of a client against its own limits, or names the gate that refuses.
-- @keys 1 cz zset 80min hold id -> when its record may be dropped
-- @keys 2 ch hash 80min hold id -> record
-- @keys 3 client hash 32days counters of the client
-- @keys 4 flights zset 80min its holds in flight
-- @args 1 hold_id text minted by the caller: the operation id
-- @args 2 worker_id text without spaces
-- @args 3 estimate tokens what is reserved
-- @args 4 prompt tokens the part that stays counted when the hold expires
-- @args 5 cost micro_usd what is reserved
-- @args 6 kept micro_usd the part that stays counted when the hold expires
-- @args 7 hold_ttl ms at most 1 h
-- @args 8 rpm count -1 for no limit, like the four below
-- @args 9 tpm tokens limit of a minute
-- @args 10 concurrency count limit of holds in flight
-- @args 11 monthly_tokens tokens limit of a calendar month, UTC
-- @args 12 monthly_usd micro_usd limit of a calendar month, UTC
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', wait, requests left, ms until all are back, tokens left, ms until all are back}
-- @returns {2, 'ok' or 'settled', the same five} when the hold id was seen before
-- @returns {0, gate, the same five}; wait is ms until the gate may open, 0 but for a refusal
-- @errors GW_BADARG
-- @idempotent by hold id, until 10 min after the hold ended
-- @complexity O(62 for a refusal + log holds)
-- @slot {client}
-- What is left is -1 where nothing is limited. A refusal changes nothing, except that it takes back
-- expired holds and follows a clock that stepped far back.
--@include lib/codes.lua
--@include lib/clock.lua
--@include lib/hold.lua

local RECLAIM_MAX = 8 -- expired holds taken back by one call
local CONCURRENCY_RETRY_MS = 100 -- a slot may be freed any moment; this only spaces the questions

local hold_id, worker = ARGV[1], ARGV[2]
local estimate, prompt, cost, kept = whole(3, 0), whole(4, 0), whole(5, 0), whole(6, 0)
local ttl, rpm, tpm, concurrency = whole(7, 1), whole(8, -1), whole(9, -1), whole(10, -1)
local monthly_tokens, monthly_usd = whole(11, -1), whole(12, -1)
local now = clock_ms(whole(13, 0))
if #KEYS ~= 4 or #ARGV ~= 13 then
  bad('the number of keys and arguments do not match')
end
if hold_id == '' or not string.match(worker, '^%S+$') or ttl > LEASE_MAX_MS then
  bad('hold id, worker id or hold ttl')
end
prompt, kept = math.min(prompt, estimate), math.min(kept, cost)
local key, flights = KEYS[3], KEYS[4]

-- Returns what expired holds have reserved, but not the request and its prompt: the provider has
-- probably seen them.
local function reclaim()
  local ids = call('ZRANGEBYSCORE', flights, string.format('-%d', now), string.format('%d', now),
    'LIMIT', '0', RECLAIM_MAX)
  if #ids == 0 then
    return
  end
  call('ZREM', flights, unpack(ids))
  for _, id in ipairs(ids) do
    local text = call('HGET', KEYS[2], id)
    if text and text ~= 'S' then
      local hold = lease_read(text)
      local place, usd = hold.places[1], hold.places[2]
      place.state, usd.state = 'X', 'X'
      -- '0 0': a refusal writes no more; the next call looks
      hold_correct(place, client_get(key, place.bucket), 0, hold.prompt - hold.estimate,
        usd.day - usd.bucket, { 'i', '0 0' })
      call('HSET', KEYS[2], id, lease_write(hold))
    end
  end
end

local known, touched, pruned = lease_find(KEYS[2], hold_id)
local values = client_get(key, math.floor(now / MINUTE.unit))
local count, quiet = flights_known(values[1], now)
if not count and not known then
  reclaim()
  values = client_get(key, math.floor(now / MINUTE.unit))
  count, quiet = flights_look(flights, now)
end
local m = ring_load(key, MINUTE, math.floor(now / MINUTE.unit), values[2], values[3])
local month = month_of(values[4], now)
local newest = values[2] and math.min(triple_read(values[2]), m.b)

local function answer(status, code, wait)
  local back_ms = newest and (newest + MINUTE.size) * MINUTE.unit - now
  local requests_left = rpm >= 0 and math.max(rpm - m.rs, 0) or -1
  local tokens_left = tpm >= 0 and math.max(tpm - m.ts, 0) or -1
  local requests_ms, tokens_ms = m.rs > 0 and back_ms or 0, m.ts > 0 and back_ms or 0
  return { status, code, wait, requests_left, requests_ms, tokens_left, tokens_ms }
end

if known then
  return answer(2, known == 'S' and SETTLED or OK, 0)
end
if tpm == 0 or (tpm > 0 and estimate > tpm) then
  return answer(0, TOO_LARGE, 0)
end

-- The refusal whose gate stays closed longest.
local gate, wait = nil, -1
local function refuse(code, ms)
  if ms > wait then
    gate, wait = code, ms
  end
end
if rpm >= 0 and m.rs + 1 > rpm then
  refuse(RPM, ring_wait(key, m, false, m.rs + 1 - rpm, now))
end
if tpm >= 0 and m.ts + estimate > tpm then
  refuse(TPM, ring_wait(key, m, true, m.ts + estimate - tpm, now))
end
if concurrency >= 0 and count + 1 > concurrency then
  refuse(CONCURRENCY, CONCURRENCY_RETRY_MS)
end
if monthly_tokens >= 0 and month.tokens + estimate > monthly_tokens then
  refuse(MONTHLY_TOKENS, month.ends - now)
end
if monthly_usd >= 0 and month.cost + cost > monthly_usd then
  refuse(MONTHLY_USD, month.ends - now)
end
if gate then
  return answer(0, gate, wait)
end

local expiry = now + ttl
local in_flight = string.format('%d %d', count + 1, math.min(quiet, expiry))
client_add(key, m, month, 1, estimate, cost, in_flight)
call('ZADD', flights, string.format('%d', expiry), hold_id)
if count == 0 or m.lap then -- new, or not renewed for a lap
  call('PEXPIRE', flights, KEEP_MS)
end
newest = m.b
if is_due(pruned, PRUNE_MS, now) then
  pruned = lease_prune(KEYS[1], KEYS[2], now) and now
else
  pruned = nil
end
local record = lease_write({ estimate = estimate, prompt = prompt, expiry = expiry, worker = worker,
  places = { { name = key, bucket = m.b, kind = 'm', day = month.id, state = 'R' },
    { name = 'usd', bucket = cost, kind = 'k', day = kept, state = 'R' } } })
lease_keep(KEYS[1], KEYS[2], hold_id, record, expiry + MARK_MS, touched, pruned, now)
return answer(1, OK, 0)
