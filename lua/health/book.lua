#!lua
-- @name health/book
-- @since 0.1.0
-- @summary Books what the end of a lease says of its model on all its keys: penalty and bench.
-- @keys 1 hz zset 20min lease id -> when it may be forgotten
-- @keys 2 model hash argument penalty and bench of the model: lib/model_record.lua has the fields
-- @args 1 lease_id text the operation id
-- @args 2 event text success or failure
-- @args 3 reserved_at ms when the lease was reserved, 0 when unknown
-- @args 4 key text whose lease it was, without spaces
-- @args 5 code text what failed, without spaces; - for a success
-- @args 6 points number what the penalty changes by, -1000 to 1000; 0 leaves it
-- @args 7 decay ms time in which a point goes
-- @args 8 most number most points
-- @args 9 bench_failures count failures that bench the model, several keys' if above 1, at most 100; 0 when this one does not count
-- @args 10 within ms time within which they count
-- @args 11 rest ms how long a benched model rests
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', 1 when this failure benched the model or 0, now_ms, points as text, since, failures, benched until}
-- @returns {2, 'ok', 0, ..} the same when it was booked before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, for 10 min
-- @complexity O(log leases of 10 min + bench_failures)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

local MARK_MS, MARKS_KEEP_MS = 600000, 1200000
local POINTS_MAX, FAILURES_MAX, LONGEST_MS = 1000, 100, 31536000000 -- a year

local function number(text, low, high)
  local value = tonumber(text)
  if not value or not (value >= low and value <= high) then
    bad('a number is not from ' .. low .. ' to ' .. high)
  end
  return value
end

local function word(text)
  if not string.match(text, '^%S+$') then
    bad('a word is empty or has spaces')
  end
  return text
end

if #KEYS ~= 2 or #ARGV ~= 12 then
  bad('two keys and twelve arguments')
end
local lease_id, event, reserved_at = word(ARGV[1]), word(ARGV[2]), whole(3, 0)
local by, code, points = word(ARGV[4]), word(ARGV[5]), number(ARGV[6], -POINTS_MAX, POINTS_MAX)
local decay, most = number(ARGV[7], 0, LONGEST_MS), number(ARGV[8], 0, POINTS_MAX)
local bench_failures, within, rest = whole(9, 0), number(ARGV[10], 0, LONGEST_MS), whole(11, 0)
if (event ~= 'success' and event ~= 'failure') or decay == 0 or bench_failures > FAILURES_MAX
  or rest > LONGEST_MS then
  bad('event, decay, bench_failures or rest')
end
local now = clock_ms(whole(12, 0))
--@include lib/model_record.lua
--@include lib/tell.lua

local record = model_read(KEYS[2], 2)
local is_new = call('ZADD', KEYS[1], 'NX', string.format('%d', now + MARK_MS), lease_id) == 1
local crossed = 0
if is_new then
  if points ~= 0 then
    model_points(record)
  end
  if event == 'success' then
    model_recover(record)
  elseif bench_failures > 0 then
    crossed = model_fail(record)
  end
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now))
  call('PEXPIRE', KEYS[1], MARKS_KEEP_MS)
  model_write(KEYS[2], record)
end
local text, since, until_at = model_number(record.points), record.points_since, record.bench_until
if is_new then
  tell(string.format('model %s %s %d %d %d %d', KEYS[2], text, since, #record.failures, until_at, now))
end
return { is_new and 1 or 2, OK, crossed, now, text, since, #record.failures, until_at }
