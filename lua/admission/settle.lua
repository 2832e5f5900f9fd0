#!lua
-- @name admission/settle
-- @since 0.1.0
-- @summary Replaces a lease's estimate by the fact, exactly once; also releases (no request, no tokens).
-- @keys 1 lz zset 80min lease id -> when it may be forgotten
-- @keys 2 health hash 54h rest and breaker of the target
-- @keys 3 health hash 54h rest of the key over all its models
-- @keys 4 window hash 27h counters and leases of a window, that of the model
-- @keys 5.. window hash as_4 further windows of the reservation; the use of its key on a day; the record of its caps
-- @args 1 lease_id text the operation id
-- @args 2 actual tokens what was used
-- @args 3 counts_request flag 1, or 0 when nothing was sent upstream
-- @args 4 slot text s0 to s8, that of the second the reservation told, else it costs time; or a<age in s>
-- @args 5 outcome text what it says of health: lib/health_outcome.lua
-- @args 6 whose text '<client> <model>' whose use it is, empty for nobody's: lib/usage.lua
-- @args 7 used text what of the tokens was output, and what else is to be told of them
-- @args 8 day_id yyyymmdd 0 for a rolling day; used only when the lease is unknown
-- @args 9 day_end ms first instant after that day, 0 for a rolling one
-- @args 10.. weight thousandths of the model, only where there are caps
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'settled'} the estimate was replaced; {1, 'reclaimed'} it had expired, corrected by the difference
-- and {.., 1} when an end that might have been forgiven was the third in a row
-- @returns {1, 'late'} the lease was unknown, charged in full to the present
-- @returns {2, 'settled'} done before
-- @returns {0, 'day_stale', now_ms} nothing done: send the day of now_ms
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, for 10 min
-- @complexity O(windows)
-- @slot {provider.account}
--@include lib/codes.lua
--@include lib/window.lua
--@include lib/slot.lua

local FAILURE, RESTS, EXEMPT = 102, 114, 101 -- f, r, e

local last = #ARGV
local has_caps = last == 11
local windows = #KEYS - (has_caps and 5 or 4)
if windows < 1 or (last ~= 10 and not has_caps) then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local lease_id, actual, requests, slot = ARGV[1], ARGV[2] + 0, ARGV[3] - 1, ARGV[4]
local day_id, day_end, now = ARGV[8] + 0, ARGV[9] + 0, ARGV[last] + 0
if lease_id == '' or (requests ~= 0 and requests ~= -1) or not (actual >= 0 and actual <= EXACT_MAX
  and day_id >= 0 and day_end >= 0 and now >= 0) or actual % 1 + day_id % 1 + day_end % 1 + now % 1 ~= 0 then
  return { err = 'GW_BADARG lease id, counts_request or a number' }
end
if now == 0 then
  local time = call('TIME')
  local us = time[2] + 0
  now = time[1] * 1000 + (us - us % 1000) / 1000
end
-- The other ends of a lease change nothing where nothing of health is recorded.
local outcome, is_booked, kind = nil, false, string.byte(ARGV[5])
if kind == FAILURE or kind == RESTS or kind == EXEMPT or call('EXISTS', KEYS[2], KEYS[3]) > 0 then
--@include lib/health_outcome.lua
end
local lz, field, code = KEYS[1], '@' .. lease_id, LATE

local writes = { false, false, false, false, false, false } -- room for two windows, taken at once
local is_old, hour_writes, caps_now, caps_is_new = false, nil, nil, nil
local lease, state, expiry, bucket, period, tokens
for n = 1, windows do
  local key = KEYS[n + 3]
  local values = call('HMGET', key, 'now', field, slot)
  if values[1] and values[2] then -- a window that is gone stays gone: nothing of it limits anyone
    if values[2] ~= lease then -- mostly that of the window before
      local estimate, prompt
      lease = values[2]
      state, expiry, bucket, period, estimate, prompt =
        match(lease, '^(%u) (%d+) %S+ (%d+) (%d+) (%d+) (%d+)$')
      if not bucket then
        return { err = 'GW_UNREADABLE key ' .. n + 3 }
      end
      tokens = actual - (state == 'X' and prompt or estimate)
      is_old = is_old or now >= expiry + 0
      code = (state == 'X' or code == RECLAIMED) and RECLAIMED or SETTLED
    end
    local s, r, t, rs, ts, day, ends, drs, dts, count, quiet = match(values[1], READ)
    if not s then
      return { err = 'GW_UNREADABLE key ' .. n + 3 }
    end
    local ago, name, text, write = s - bucket, nil, nil, WRITE_TOKENS
    if ago <= 0 then -- below only where an older worker has moved it
      local r_new, t_new = r + requests, t + tokens
      r_new, t_new = r_new > 0 and r_new or 0, t_new > 0 and t_new or 0
      r, t, rs, ts, write = r_new, t_new, rs + r_new - r, ts + t_new - t, WRITE
    elseif ago < SECONDS then
--@include lib/second_before.lua
      write = requests ~= 0 and WRITE or write
    end
    if period == day or (day + 0 < CALENDAR_MIN and period - day > 0) then
      dts = dts + tokens
      dts = dts > 0 and dts or 0
      if requests ~= 0 then
        drs, write = drs + requests, WRITE
        drs = drs > 0 and drs or 0
      end
    elseif day + 0 < CALENDAR_MIN and day - period < HOURS then
--@include lib/hour_before.lua
    end
    if state == 'R' then
      count = count - 1
      count = count > 0 and count or 0
    end
    writes[3 * n - 2] = format(write, s, r, t, rs, ts, day, ends, drs, dts, count, quiet)
    writes[3 * n - 1], writes[3 * n] = name, text
  end
end

local row, write_rows
if ARGV[6] ~= '' then
  local told = ARGV[7]
--@include lib/usage_one.lua
end
if has_caps then
--@include lib/caps_settle.lua
end
if not lease then
--@include lib/late.lua
end
if outcome then
--@include lib/health_settle.lua
end
for n = 1, windows do
  local key, now_text = KEYS[n + 3], writes[3 * n - 2]
  if writes[3 * n] then
    call('HSET', key, 'now', now_text, writes[3 * n - 1], writes[3 * n])
  elseif now_text then
    call('HSET', key, 'now', now_text)
  end
  if now_text then
    call('HDEL', key, field)
  end
end
if caps_now or hour_writes or is_old then
--@include lib/settle_rest.lua
end
if row then
  call('HSET', KEYS[windows + 4], ARGV[6], row)
elseif write_rows then
  write_rows()
end
if is_booked then
  return { 1, code, 1 }
end
return { 1, code }
