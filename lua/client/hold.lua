#!lua
-- @name client/hold
-- @since 0.1.0
-- @summary Holds one request of a client against its own limits, or names the gate that refuses.
-- @keys 1 cz zset 80min hold id -> when it may be forgotten
-- @keys 2 client hash 32days counters and holds of the client
-- @args 1 hold_id text minted by the caller: the operation id
-- @args 2 estimate tokens what is reserved
-- @args 3 prompt tokens the part that stays counted when the hold expires
-- @args 4 cost micro_usd what is reserved
-- @args 5 kept micro_usd the part that stays counted when the hold expires
-- @args 6 hold_ttl ms at most 1 h
-- @args 7 worker_id text without spaces
-- @args 8 rpm count -1 for no limit, like the four below
-- @args 9 tpm tokens limit of a minute
-- @args 10 concurrency count limit of holds in flight
-- @args 11 monthly_tokens tokens limit of a calendar month, UTC
-- @args 12 monthly_usd micro_usd limit of a calendar month, UTC
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', wait, requests left, ms until all are back, tokens left, ms until all are back, second}
-- @returns {2, 'ok' or 'settled', the same six} when the hold id was seen before
-- @returns {0, gate, the same six}; wait is ms until the gate may open, 0 but for a refusal
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by hold id, until 10 min after the hold ended
-- @complexity O(log holds); O(62) for a refusal, O(holds in flight) when one has expired or the clock stepped far back
-- @slot {client}
-- What is left is -1 where nothing is limited. A refusal changes nothing, except that it takes back
-- expired holds and follows a clock that stepped far back.
--@include lib/codes.lua
--@include lib/window.lua

-- Equal to the values of `core.limits.allowance.ClientGate`.
local MONTHLY_TOKENS, MONTHLY_USD = 'monthly_tokens', 'monthly_usd'
local CONCURRENCY_RETRY_MS = 100 -- a slot may be freed any moment; this only spaces the questions

if #KEYS ~= 2 or #ARGV ~= 13 then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local hold_id, estimate, prompt, cost, kept = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local ttl, worker, now = ARGV[6] + 0, ARGV[7], ARGV[13] + 0
local rpm, tpm, concurrency = ARGV[8] + 0, ARGV[9] + 0, ARGV[10] + 0
local monthly_tokens, monthly_usd = ARGV[11] + 0, ARGV[12] + 0
if hold_id == '' or not match(worker, '^%S+$') or not (estimate >= 0 and estimate <= EXACT_MAX
  and prompt >= 0 and cost >= 0 and cost <= EXACT_MAX and kept >= 0 and ttl >= 1
  and ttl <= LEASE_MAX_MS and rpm >= -1 and tpm >= -1 and concurrency >= -1 and monthly_tokens >= -1
  and monthly_usd >= -1 and now >= 0)
  or estimate % 1 + prompt % 1 + cost % 1 + kept % 1 + ttl % 1 + now % 1 ~= 0 then
  return { err = 'GW_BADARG hold id, worker id or a number' }
end
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
prompt = prompt < estimate and prompt or estimate
kept = kept < cost and kept or cost
local cz, key, field, expiry = KEYS[1], KEYS[2], '@' .. hold_id, now + ttl
local second = (now - now % SECOND_MS) / SECOND_MS

local text = call('HGET', key, 'now')
local s, r, t, rs, ts, month, ends, used, spent, count, quiet = match(text or '', READ)
local newest, sets, is_lap, is_known, gate, wait = s, nil, false, nil, nil, -1
if not s or s + 0 ~= second or now >= ends + 0 or now >= quiet + 0 then
--@include lib/client_present.lua
end
if newest and newest - s > 0 then -- the clock stepped far back
  newest = s
end
local rs_new, ts_new, used_new, spent_new = rs + 1, ts + estimate, used + estimate, spent + cost
count = count + 1

if (rpm >= 0 and rs_new > rpm) or (tpm >= 0 and (ts_new > tpm or tpm == 0))
  or (concurrency >= 0 and count > concurrency) or (monthly_tokens >= 0 and used_new > monthly_tokens)
  or (monthly_usd >= 0 and spent_new > monthly_usd) then
--@include lib/client_refusal.lua
end
if gate then
  is_known = is_known or call('ZSCORE', cz, hold_id)
elseif not is_known then
  is_known = call('ZADD', cz, 'NX', format('%d', expiry + MARK_MS), hold_id) == 0
end
local status, code = 1, OK
if is_known then
  status, code, wait = 2, call('HEXISTS', key, field) == 1 and OK or SETTLED, 0
elseif gate then
  status, code = 0, gate
else
  if expiry < quiet + 0 then
    quiet = expiry
  end
  rs, ts, newest, wait = rs_new, ts_new, s, 0
  call('HSET', key, 'now',
    format(WRITE, s, r + 1, t + estimate, rs, ts, month, ends, used_new, spent_new, count, quiet),
    field, format('R %d %s %s %s %d %d %d %d', expiry, worker, s, month, estimate, prompt, cost, kept))
  if sets then
--@include lib/client_forget.lua
  end
end
local back = newest and (newest + SECONDS) * SECOND_MS - now or 0
return { status, code, wait, rpm < 0 and -1 or rpm > rs + 0 and rpm - rs or 0, rs + 0 > 0 and back or 0,
  tpm < 0 and -1 or tpm > ts + 0 and tpm - ts or 0, ts + 0 > 0 and back or 0, second }
