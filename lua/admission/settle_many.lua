#!lua
-- @name admission/settle_many
-- @since 0.1.0
-- @summary Settles leases of one target that ended at about the same time, as far as nothing is unusual.
-- @keys 1 lz zset 80min lease id -> when it may be forgotten
-- @keys 2 health hash 54h rest and breaker of the target
-- @keys 3 health hash 54h rest of the key over all its models
-- @keys 4 window hash 27h counters and leases of a window, that of the model
-- @keys 5.. window hash as_4 further windows, those of the reservations; then the use of their key on a day
-- @args 1.. lease_id,actual,counts_request,slot,outcome,whose,used text,tokens,flag,text,text,text,text as for `settle`
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, then for each lease 1: the estimate was replaced; or 0: nothing was done, ask `settle`}
-- @returns {0} nothing was done at all: ask `settle` about each
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, for 10 min
-- @complexity O(windows * leases)
-- @slot {provider.account}
-- What is left to `settle`: leases that are not in flight in every window or were counted in another
-- day than the present, ends that say something of health, and everything where some is recorded.
--@include lib/codes.lua
--@include lib/window.lua
--@include lib/slot.lua
--@include lib/usage.lua
--@include lib/usage_add.lua

local SUCCESS, NEUTRAL = 115, 110 -- s, n
local LEASE = '^R (%d+) %S+ (%d+) (%d+) (%d+) %d+$'

local windows, last = #KEYS - 4, #ARGV
if windows < 1 or last < 8 or last % 7 ~= 1 then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local leases, now = (last - 1) / 7, ARGV[last] + 0
if not (now >= 0) or now % 1 ~= 0 then
  return { err = 'GW_BADARG now' }
end
for at = 1, last - 7, 7 do
  local actual, requests = ARGV[at + 1] + 0, ARGV[at + 2]
  if ARGV[at] == '' or (requests ~= '0' and requests ~= '1') or not (actual >= 0 and actual <= EXACT_MAX)
    or actual % 1 ~= 0 then
    return { err = 'GW_BADARG lease id, counts_request or a number' }
  end
end
if call('EXISTS', KEYS[2], KEYS[3]) > 0 then
  return { 0 }
end
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end

-- Which of them are plain in all windows, before anything of any is written.
local names = { 'now' }
for at = 1, last - 7, 7 do
  names[#names + 1], names[#names + 2] = '@' .. ARGV[at], ARGV[at + 3]
end
local stored, reply, seen = {}, { 1 }, {}
for i = 1, leases do
  local at = 7 * i - 6
  local id, kind = ARGV[at], string.byte(ARGV[at + 4])
  reply[i + 1] = (kind == SUCCESS or kind == NEUTRAL) and not seen[id] and 1 or 0
  seen[id] = true
end
for n = 1, windows do
  local values = call('HMGET', KEYS[n + 3], unpack(names))
  stored[n] = values
  local day = match(values[1] or '', '^%d+ %d+ %d+ %d+ %d+ (%d+) %d+ %d+ %d+ %d+ %d+$')
  if not day then
    return { 0 }
  end
  for i = 1, leases do
    local expiry, _, period = match(values[2 * i] or '', LEASE)
    if not expiry or now >= expiry + 0 or period ~= day then
      reply[i + 1] = 0
    end
  end
end

local rows = {}
for i = 1, leases do
  local at = 7 * i - 6
  if reply[i + 1] == 1 and ARGV[at + 5] ~= '' then
    local fault = usage_add(rows, #KEYS, ARGV[at + 5], ARGV[at + 6], ARGV[at + 1] + 0, ARGV[at + 2] + 0)
    if fault then
      return { err = fault }
    end
  end
end
for n = 1, windows do
  local key, values = KEYS[n + 3], stored[n]
  local s, r, t, rs, ts, day, ends, drs, dts, count, quiet = match(values[1], READ)
  r, t, rs, ts, drs, dts, count = r + 0, t + 0, rs + 0, ts + 0, drs + 0, dts + 0, count + 0
  local seconds, order, texts, fields = {}, {}, {}, {} -- seconds as they are after what was settled so far
  for i = 1, leases do
    if reply[i + 1] == 1 then
      local at = 7 * i - 6
      local requests, slot = ARGV[at + 2] - 1, ARGV[at + 3]
      local _, bucket, _, estimate = match(values[2 * i], LEASE)
      local tokens, ago = ARGV[at + 1] - estimate, s - bucket
      if ago <= 0 then -- below only where an older worker moved it
        local r_new, t_new = math.max(r + requests, 0), math.max(t + tokens, 0)
        rs, ts, r, t = rs + r_new - r, ts + t_new - t, r_new, t_new
      elseif ago < SECONDS then
        local one = seconds[bucket]
        if not one then
          local name = slot_name('s', SECOND_FIELDS, bucket)
          local text = texts[name] or name == slot and values[2 * i + 1] or call('HGET', key, name)
          one = { slot_get(text, bucket, key) }
          one[3], texts[name], seconds[bucket], order[#order + 1] = name, text, one, bucket
        end
        local r_new, t_new = math.max(one[1] + requests, 0), math.max(one[2] + tokens, 0)
        rs, ts, one[1], one[2] = rs + r_new - one[1], ts + t_new - one[2], r_new, t_new
      end
      drs, dts = math.max(drs + requests, 0), math.max(dts + tokens, 0)
      count = math.max(count - 1, 0)
      fields[#fields + 1] = '@' .. ARGV[at]
    end
  end
  if fields[1] then
    local writes = { 'now', format(WRITE, s, r, t, rs, ts, day, ends, drs, dts, count, quiet) }
    for _, bucket in ipairs(order) do
      local one = seconds[bucket]
      texts[one[3]] = slot_put(texts[one[3]], bucket, one[1], one[2], key)
    end
    for name, text in pairs(texts) do
      writes[#writes + 1], writes[#writes + 2] = name, text
    end
    stored[n].writes, stored[n].fields = writes, fields
  end
end
for n = 1, windows do
  if stored[n].fields then
    call('HSET', KEYS[n + 3], unpack(stored[n].writes))
    call('HDEL', KEYS[n + 3], unpack(stored[n].fields))
  end
end
usage_write(rows, KEYS[#KEYS])
return reply
