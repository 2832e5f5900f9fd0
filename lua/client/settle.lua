#!lua
-- @name client/settle
-- @since 0.1.0
-- @summary Replaces what a client's request held by what it used, exactly once; also releases.
-- @keys 1 cz zset 80min hold id -> when it may be forgotten
-- @keys 2 client hash 32days counters and holds of the client
-- @args 1 hold_id text the operation id
-- @args 2 tokens tokens used by all attempts of the request
-- @args 3 cost micro_usd of these tokens
-- @args 4 counts_request flag 1, or 0 when nothing was sent upstream
-- @args 5 slot text s0 to s8, that of the second the hold told, else it costs time; or a<age in s>
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'settled'} the estimate was replaced; {1, 'reclaimed'} it had expired, corrected by the difference
-- @returns {1, 'late'} the hold was unknown, charged in full to the present
-- @returns {2, 'settled'} done before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by hold id, for 10 min
-- @complexity O(1)
-- @slot {client}
--@include lib/codes.lua
--@include lib/window.lua
--@include lib/slot.lua

if #KEYS ~= 2 or #ARGV ~= 6 then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local hold_id, actual, cost, requests, slot = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] - 1, ARGV[5]
local now = ARGV[6] + 0
if hold_id == '' or (requests ~= 0 and requests ~= -1) or not (actual >= 0 and actual <= EXACT_MAX
  and cost >= 0 and cost <= EXACT_MAX and now >= 0) or actual % 1 + cost % 1 + now % 1 ~= 0 then
  return { err = 'GW_BADARG hold id, counts_request or a number' }
end
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
local cz, key, field = KEYS[1], KEYS[2], '@' .. hold_id

local values = call('HMGET', key, 'now', field, slot)
if not values[1] or not values[2] then
--@include lib/client_late.lua
end
local state, expiry, bucket, period, estimate, prompt, held_cost, kept =
  match(values[2], '^(%u) (%d+) %S+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
local s, r, t, rs, ts, month, ends, used, spent, count, quiet = match(values[1], READ)
if not (s and state) then
  return { err = 'GW_UNREADABLE key 2' }
end
local is_reclaimed = state == 'X'
local tokens, money = actual - (is_reclaimed and prompt or estimate), cost - (is_reclaimed and kept or held_cost)
local ago, name, text = s - bucket, nil, nil
if ago <= 0 then -- below only where an older worker has moved it
  local r_new, t_new = r + requests, t + tokens
  r_new, t_new = r_new > 0 and r_new or 0, t_new > 0 and t_new or 0
  r, t, rs, ts = r_new, t_new, rs + r_new - r, ts + t_new - t
elseif ago < SECONDS then
--@include lib/second_before.lua
end
if period == month then
  used, spent = used + tokens, spent + money
  used, spent = used > 0 and used or 0, spent > 0 and spent or 0
end
if state == 'R' then
  count = count - 1
  count = count > 0 and count or 0
end
local stored = format(WRITE, s, r, t, rs, ts, month, ends, used, spent, count, quiet)
if name then
  call('HSET', key, 'now', stored, name, text)
else
  call('HSET', key, 'now', stored)
end
call('HDEL', key, field)
if now >= expiry + 0 then
  call('ZADD', cz, format('%d', now + MARK_MS), hold_id)
  call('PEXPIRE', cz, KEEP_MS)
end
return { 1, is_reclaimed and RECLAIMED or SETTLED }
