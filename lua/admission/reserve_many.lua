#!lua
-- @name admission/reserve_many
-- @since 0.1.0
-- @summary Admits leases of one target that were asked for at once, as far as nothing is unusual.
-- @keys 1 lz zset 80min lease id -> when it may be forgotten
-- @keys 2 health hash 54h rest and breaker of the target
-- @keys 3 health hash 54h rest of the key over all its models
-- @keys 4 window hash 27h counters and leases of a window, that of the model
-- @keys 5.. window hash as_4 further windows
-- @args 1 worker_id text as for `reserve`, like all that follows
-- @args 2 day_id yyyymmdd 0 for a rolling day
-- @args 3 day_end ms first instant after that day, 0 for a rolling one
-- @args 4.. rpm,rpd,tpm,tpd,concurrency count five for each window, -1 for no limit; then four for
-- each lease: its id, estimate, prompt and ttl
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, second, then for each lease: requests left this minute, tokens left this minute}, -1 for
-- no limit; -2 for a lease of which nothing was done: ask `reserve` about it
-- @returns {0} nothing was done at all: ask `reserve` about each
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, until 10 min after the lease ended
-- @complexity O(windows * leases + leases * log leases)
-- @slot {provider.account}
-- Leases are taken in their order, each as `reserve` would. What that would refuse, or what was seen
-- before, is left to it, and all of it where health is recorded or an expired lease has to be taken
-- back: the rules of these stand in one place only.
--@include lib/codes.lua
--@include lib/window.lua

local ALONE = -2
local windows, last = #KEYS - 3, #ARGV
local first = 4 + 5 * windows -- of the leases
if windows < 1 or last < first + 4 or (last - first) % 4 ~= 0 then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local worker, day_id, day_end, now = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[last] + 0
if not match(worker, '^%S+$') or not (day_id >= 0 and day_end >= 0 and now >= 0)
  or day_id % 1 + day_end % 1 + now % 1 ~= 0 then
  return { err = 'GW_BADARG worker id or a number' }
end
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
if (day_id > 0 and (day_end <= now or day_end > now + DAY_MAX_MS)) or call('EXISTS', KEYS[2], KEYS[3]) > 0 then
  return { 0 }
end

local lz, second = KEYS[1], (now - now % SECOND_MS) / SECOND_MS
local held, lapped, moved = {}, nil, nil
for n = 1, windows do
  local key, at = KEYS[n + 3], 5 * n - 2
  local one = { rpm = ARGV[at + 1] + 0, rpd = ARGV[at + 2] + 0, tpm = ARGV[at + 3] + 0,
    tpd = ARGV[at + 4] + 0, slots = ARGV[at + 5] + 0 }
  if not (one.rpm >= -1 and one.rpd >= -1 and one.tpm >= -1 and one.tpd >= -1 and one.slots >= -1) then
    return { err = 'GW_BADARG a limit' }
  end
  local text = call('HGET', key, 'now')
  local s, r, t, rs, ts, day, ends, drs, dts, count, quiet = match(text or '', READ)
  if text and (not s or now >= quiet + 0 or s - second > SECONDS) then
    return { 0 }
  end
  local sets = {}
  if not s or s + 0 ~= second or now >= ends + 0 or (day + 0 < CALENDAR_MIN) ~= (day_id == 0) then
--@include lib/present.lua
    local is_lap
    s, r, t, rs, ts, day, ends, drs, dts, count, quiet, sets, is_lap = present(key, text, day_id, day_end, now)
    if is_lap then
      lapped = lapped or {}
      lapped[#lapped + 1] = key
    end
    moved = (n == 1 or is_lap) and rs or moved
  end
  one.s, one.day, one.ends, one.quiet, one.sets = s, day, ends, quiet + 0, sets
  one.r, one.t, one.rs, one.ts, one.drs, one.dts, one.count = r + 0, t + 0, rs + 0, ts + 0, drs + 0, dts + 0,
    count + 0
  one.counted = ' ' .. s .. ' ' .. day .. ' '
  held[n] = one
end

local ids = {}
for at = first, last - 4, 4 do
  ids[#ids + 1] = ARGV[at]
end
local known = call('ZMSCORE', lz, unpack(ids))
local reply, marks, taken = { 1, second }, {}, {}
for i = 1, #ids do
  local id, at = ids[i], first + 4 * i - 4
  local estimate, prompt, ttl = ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] + 0
  if id == '' or not (estimate >= 0 and estimate <= EXACT_MAX and prompt >= 0 and ttl >= 1
    and ttl <= LEASE_MAX_MS) or estimate % 1 + prompt % 1 + ttl % 1 ~= 0 then
    return { err = 'GW_BADARG lease id or a number' }
  end
  local fits = not (known[i] or taken[id])
  for n = 1, windows do
    local one = held[n]
    if (one.rpm >= 0 and one.rs >= one.rpm) or (one.rpd >= 0 and one.drs >= one.rpd)
      or (one.slots >= 0 and one.count >= one.slots)
      or (one.tpm >= 0 and (one.ts + estimate > one.tpm or one.tpm == 0))
      or (one.tpd >= 0 and (one.dts + estimate > one.tpd or one.tpd == 0)) then
      fits = false
    end
  end
  local requests_left, tokens_left = ALONE, ALONE
  if fits then
    requests_left, tokens_left, taken[id] = -1, -1, true
    local expiry, field = now + ttl, '@' .. id
    local head, tail = format('R %d %s', expiry, worker),
      format('%d %d', estimate, prompt > estimate and estimate or prompt)
    marks[#marks + 1], marks[#marks + 2] = format('%d', expiry + MARK_MS), id
    for n = 1, windows do
      local one = held[n]
      local sets, rs, ts = one.sets, one.rs + 1, one.ts + estimate
      one.r, one.t, one.rs, one.ts = one.r + 1, one.t + estimate, rs, ts
      one.drs, one.dts, one.count = one.drs + 1, one.dts + estimate, one.count + 1
      if expiry < one.quiet then
        one.quiet = expiry
      end
      sets[#sets + 1], sets[#sets + 2] = field, head .. one.counted .. tail
      if one.rpm >= 0 and (requests_left < 0 or one.rpm - rs < requests_left) then
        requests_left = one.rpm - rs
      end
      if one.tpm >= 0 and (tokens_left < 0 or one.tpm - ts < tokens_left) then
        tokens_left = one.tpm - ts
      end
    end
  end
  reply[2 * i + 1], reply[2 * i + 2] = requests_left, tokens_left
end
if marks[1] then
  call('ZADD', lz, unpack(marks))
  for n = 1, windows do
    local one = held[n]
    call('HSET', KEYS[n + 3], 'now', format(WRITE, one.s, one.r, one.t, one.rs, one.ts, one.day, one.ends, one.drs,
      one.dts, one.count, format('%d', one.quiet)), unpack(one.sets))
  end
  if moved then
--@include lib/forget.lua
  end
end
return reply
