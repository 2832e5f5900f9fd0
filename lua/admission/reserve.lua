#!lua
-- @name admission/reserve
-- @since 0.1.0
-- @summary Admits one target against all its windows, or names the gate that refuses and when it opens.
-- @keys 1 lz zset 80min lease id -> when it may be forgotten
-- @keys 2 health hash 54h rest and breaker of the target
-- @keys 3 health hash 54h rest of the key over all its models
-- @keys 4 window hash 27h counters and leases of a window, that of the model
-- @keys 5.. window hash as_4 further windows; then, where there are caps, the record of the key's caps
-- @args 1 lease_id text minted by the caller: the operation id
-- @args 2 estimate tokens what is reserved
-- @args 3 prompt tokens the part that stays counted when the lease expires
-- @args 4 lease_ttl ms at most 1 h
-- @args 5 worker_id text without spaces; `reap` finds the leases of a dead worker by it
-- @args 6 day_id yyyymmdd 0 for a rolling day
-- @args 7 day_end ms first instant after that day, 0 for a rolling one
-- @args 8.. rpm,rpd,tpm,tpd,concurrency count five for each window, -1 for no limit
-- (then, where there are caps: requests and weighted tokens a day, tokens a month, -1 for none; weight)
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', requests left this minute, tokens left this minute, second}, -1 for no limit;
-- and {.., generation, 1 for a trial or 0, now_ms} where something of health is recorded
-- @returns {2, 'ok' or 'settled', -1, -1, 0} when the lease id was seen before
-- @returns {0, gate, window 1.., ms until it may open, now_ms}; 0 for day_stale, above the last for KEYS[3],
-- above that for the caps
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, until 10 min after the lease ended
-- @complexity O(windows + log leases); O(62) for a refusal, O(leases in flight) when one has expired or the
-- clock stepped far back
-- @slot {provider.account}
-- A refusal changes nothing, except that it takes back expired leases and follows a clock that
-- stepped far back.
--@include lib/codes.lua
--@include lib/window.lua

-- A slot may be freed, a trial may end any moment; these only space the questions.
local CONCURRENCY_RETRY_MS, TRIAL_RETRY_MS = 100, 1000

local last = #ARGV
local has_caps = last == 5 * #KEYS - 8 -- one key more, four arguments instead of a window's five
local windows = #KEYS - (has_caps and 4 or 3)
if windows < 1 or not (has_caps or last == 5 * #KEYS - 7) then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local lease_id, estimate, prompt, ttl, worker = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5]
local day_id, day_end, now = ARGV[6] + 0, ARGV[7] + 0, ARGV[last] + 0
if lease_id == '' or not match(worker, '^%S+$') or not (estimate >= 0 and estimate <= EXACT_MAX and
  prompt >= 0 and ttl >= 1 and ttl <= LEASE_MAX_MS and day_id >= 0 and day_end >= 0 and now >= 0)
  or estimate % 1 + prompt % 1 + ttl % 1 + day_id % 1 + day_end % 1 + now % 1 ~= 0 then
  return { err = 'GW_BADARG lease id, worker id or a number' }
end
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
if prompt > estimate then
  prompt = estimate
end
local lz, field, expiry = KEYS[1], '@' .. lease_id, now + ttl
local second = (now - now % SECOND_MS) / SECOND_MS

if day_id > 0 and (day_end <= now or day_end > now + DAY_MAX_MS) and not call('ZSCORE', lz, lease_id) then
  return { 0, DAY_STALE, 0, 0, now }
end

local head, tail = format('R %d %s ', expiry, worker), format(' %d %d', estimate, prompt)
local requests_left, tokens_left = -1, -1
local lapped, moved, trials, generation
local gate, scope, wait = nil, 0, -1 -- of the refusal that lasts longest
local writes = { false, false, false, false, false, false } -- room for two windows, taken at once
if call('EXISTS', KEYS[2], KEYS[3]) > 0 then
--@include lib/health_gate.lua
end
for n = 1, windows do
  local key, at = KEYS[n + 3], 5 * n
  local rpm, rpd, tpm, tpd, concurrency =
    ARGV[at + 3] + 0, ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0, ARGV[at + 7] + 0
  if not (rpm >= -1 and rpd >= -1 and tpm >= -1 and tpd >= -1 and concurrency >= -1) then
    return { err = 'GW_BADARG a limit' }
  end
  local text = call('HGET', key, 'now')
  local s, r, t, rs, ts, day, ends, drs, dts, count, quiet = match(text or '', READ)
  local sets
  if not s or s + 0 ~= second or now >= ends + 0 or now >= quiet + 0
    or (day + 0 < CALENDAR_MIN) ~= (day_id == 0) then
--@include lib/reserve_move.lua
  end
  r, t, rs, ts, drs, dts, count = r + 1, t + estimate, rs + 1, ts + estimate, drs + 1, dts + estimate,
    count + 1
  if (rpm >= 0 and rs > rpm) or (rpd >= 0 and drs > rpd) or (concurrency >= 0 and count > concurrency)
    or (tpm >= 0 and (ts > tpm or tpm == 0)) or (tpd >= 0 and (dts > tpd or tpd == 0)) then
--@include lib/refusal.lua
    gate, scope, wait = refusal(key, n, s, day, ends, sets or {})
  end
  if expiry < quiet + 0 then
    quiet = expiry
  end
  writes[3 * n - 2] = format(WRITE, s, r, t, rs, ts, day, ends, drs, dts, count, quiet)
  writes[3 * n - 1] = head .. s .. ' ' .. day .. tail
  writes[3 * n] = sets
  if rpm >= 0 and (requests_left < 0 or rpm - rs < requests_left) then
    requests_left = rpm - rs
  end
  if tpm >= 0 and (tokens_left < 0 or tpm - ts < tokens_left) then
    tokens_left = tpm - ts
  end
end

local caps_now, caps_lease, caps_is_new
if has_caps then
--@include lib/caps_gate.lua
end

-- A lease id that is known is not counted again; asked only now, since it is seldom known.
local is_known
if gate then
  is_known = call('ZSCORE', lz, lease_id)
else
  is_known = call('ZADD', lz, 'NX', format('%d', expiry + MARK_MS), lease_id) == 0
end
if is_known then
  return { 2, call('HEXISTS', KEYS[4], field) == 1 and OK or SETTLED, -1, -1, 0 }
end
if gate then
  return { 0, gate, scope, wait, now }
end
for n = 1, windows do
  local sets = writes[3 * n]
  if sets then
    call('HSET', KEYS[n + 3], 'now', writes[3 * n - 2], field, writes[3 * n - 1], unpack(sets))
  else
    call('HSET', KEYS[n + 3], 'now', writes[3 * n - 2], field, writes[3 * n - 1])
  end
end
if caps_now then
--@include lib/caps_write.lua
end
if moved then
--@include lib/forget.lua
end
if generation then
  if trials then
--@include lib/health_trial.lua
  end
  return { 1, OK, requests_left, tokens_left, second, generation, trials and 1 or 0, now }
end
return { 1, OK, requests_left, tokens_left, second }
