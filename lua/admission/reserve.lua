#!lua
-- @name admission/reserve
-- @since 0.1.0
-- @summary Admits one target against all its windows, or names the gate that refuses and when it opens.
-- @keys 1 lz zset 80min lease id -> when its record may be dropped
-- @keys 2 lh hash 80min lease id -> record
-- @keys 3 window hash 27h counters of a window
-- @keys 4 flights zset 80min leases in flight in that window; further windows follow as pairs
-- @keys 5.. window,flights pair as_3_and_4 the next windows
-- @args 1 lease_id text minted by the caller: the operation id
-- @args 2 worker_id text without spaces; `reap` finds the leases of a dead worker by it
-- @args 3 estimate tokens what is reserved
-- @args 4 prompt tokens the part that stays counted when the lease expires
-- @args 5 lease_ttl ms at most 1 h
-- @args 6 day_id yyyymmdd 0 for a rolling day
-- @args 7 day_end ms first instant after that day, 0 for a rolling one
-- @args 8.. rpm,rpd,tpm,tpd,concurrency count five for each window, -1 for no limit
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', requests left this minute, tokens left this minute}, -1 for no limit
-- @returns {2, 'ok' or 'settled', -1, -1} when the lease id was seen before
-- @returns {0, gate, window 1.., ms until it may open, now_ms}; window 0 for day_stale
-- @errors GW_BADARG
-- @idempotent by lease id, until 10 min after the lease ended
-- @complexity O(windows + 62 for a refusal + log leases)
-- @slot {provider.account}
-- A refusal changes nothing, except that it takes back expired leases and follows a clock that
-- stepped far back.
--@include lib/codes.lua
--@include lib/clock.lua
--@include lib/reclaim.lua

local RECLAIM_MAX = 8 -- expired leases taken back by one call
local CONCURRENCY_RETRY_MS = 100 -- a slot may be freed any moment; this only spaces the questions

local lease_id, worker = ARGV[1], ARGV[2]
local estimate, prompt, ttl = whole(3, 0), whole(4, 0), whole(5, 1)
local day_id, day_end = whole(6, 0), whole(7, 0)
local windows = (#KEYS - 2) / 2
if windows < 1 or windows % 1 ~= 0 or #ARGV ~= 8 + 5 * windows then
  bad('the number of keys and arguments do not match')
end
if lease_id == '' or not string.match(worker, '^%S+$') or ttl > LEASE_MAX_MS then
  bad('lease id, worker id or lease ttl')
end
prompt = math.min(prompt, estimate)
local limits = {}
for at = 8, #ARGV - 1 do
  limits[at - 7] = whole(at, -1)
end
local now = clock_ms(whole(#ARGV, 0))

local known, touched, pruned = lease_find(KEYS[2], lease_id)
if known then
  return { 2, known == 'S' and SETTLED or OK, -1, -1 }
end
if day_is_stale(day_id, day_end, now) then
  return { 0, DAY_STALE, 0, 0, now }
end

local loaded, budget = {}, RECLAIM_MAX
for n = 1, windows do
  local key, flights = KEYS[2 * n + 1], KEYS[2 * n + 2]
  local values = window_now(key, day_id, now)
  local count, quiet = flights_known(values[1], now)
  if not count then
    local reclaimed = reclaim(KEYS[2], key, flights, now, budget)
    if reclaimed > 0 then
      budget, values = budget - reclaimed, window_now(key, day_id, now)
    end
    count, quiet = flights_look(flights, now)
  end
  local w = window_load(key, day_id, day_end, now, values)
  w.count, w.quiet, loaded[n] = count, quiet, w
end

-- The refusal whose gate stays closed longest; `too_large` beats all, since waiting never helps.
local gate, scope, wait = nil, 0, -1
local function refuse(code, n, ms)
  if ms > wait then
    gate, scope, wait = code, n, ms
  end
end

local function day_wait(w, is_tokens, need)
  return w.day and w.day.de - now or ring_wait(w.key, w.hours, is_tokens, need, now)
end

for n = 1, windows do
  local w, at = loaded[n], 5 * n - 4
  local rpm, rpd, tpm, tpd, concurrency = unpack(limits, at, at + 4)
  local m = w.minute
  if tpm == 0 or tpd == 0 or (tpm > 0 and estimate > tpm) or (tpd > 0 and estimate > tpd) then
    return { 0, TOO_LARGE, n, 0, now }
  end
  if rpm >= 0 and m.rs + 1 > rpm then
    refuse(RPM, n, ring_wait(w.key, m, false, m.rs + 1 - rpm, now))
  end
  if tpm >= 0 and m.ts + estimate > tpm then
    refuse(TPM, n, ring_wait(w.key, m, true, m.ts + estimate - tpm, now))
  end
  if rpd >= 0 and w.day_requests + 1 > rpd then
    refuse(RPD, n, day_wait(w, false, w.day_requests + 1 - rpd))
  end
  if tpd >= 0 and w.day_tokens + estimate > tpd then
    refuse(TPD, n, day_wait(w, true, w.day_tokens + estimate - tpd))
  end
  if concurrency >= 0 and w.count + 1 > concurrency then
    refuse(CONCURRENCY, n, CONCURRENCY_RETRY_MS)
  end
end
if gate then
  return { 0, gate, scope, wait, now }
end

local expiry = now + ttl
local expiry_text = string.format('%d', expiry)
local lease = { estimate = estimate, prompt = prompt, expiry = expiry, worker = worker, places = {} }
local requests_left, tokens_left = -1, -1
local function least(left, limit, used)
  return limit >= 0 and (left < 0 or limit - used < left) and limit - used or left
end
for n = 1, windows do
  local w, flights = loaded[n], KEYS[2 * n + 2]
  local quiet = math.min(w.quiet, expiry)
  window_add(w, 1, estimate, string.format('%d %d', w.count + 1, quiet))
  call('ZADD', flights, expiry_text, lease_id)
  if w.count == 0 or w.minute.lap then -- new, or not renewed for a lap
    call('PEXPIRE', flights, KEEP_MS)
  end
  lease.places[n] = { name = w.key, bucket = w.minute.b, state = 'R',
    kind = w.day and 'd' or 'h', day = w.day and w.day.d or w.hours.b }
  requests_left = least(requests_left, limits[5 * n - 4], w.minute.rs)
  tokens_left = least(tokens_left, limits[5 * n - 2], w.minute.ts)
end

if is_due(pruned, PRUNE_MS, now) then
  pruned = lease_prune(KEYS[1], KEYS[2], now) and now
else
  pruned = nil
end
lease_keep(KEYS[1], KEYS[2], lease_id, lease_write(lease), expiry + MARK_MS, touched, pruned, now)
return { 1, OK, requests_left, tokens_left }
