#!lua
-- @name admission/observe
-- @since 0.1.0
-- @summary Raises the counts of a window where its provider has less left than we think; never lowers one.
-- @keys 1 window hash 27h counters and leases of a window
-- @keys 2 health hash 54h rest of what the window is about: where nothing is left and we have no limit
-- @args 1 age ms how long ago the provider said so
-- @args 2 day_id yyyymmdd 0 for a rolling day
-- @args 3 day_end ms first instant after that day, 0 for a rolling one
-- @args 4.. limit,remaining,hold count,count,ms three for each of requests and tokens of the minute, then of the day: our limit and what the provider has left, -1 for none, and how long that holds
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', ..} raised by, used before, part of it that the provider may not know yet; for each of the four
-- @returns {0, 'day_stale', now_ms} nothing done: send the day of now_ms
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes: what was raised is less than the provider has left no more
-- @complexity O(62)
-- @slot {provider.account}
-- Where we have no limit that could be raised, nothing left means a rest until then, on the provider's word.
-- What others used is put where it leaves the window when the provider's own count is said to start
-- anew. `core/limits/observe.py` is the rule.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/window.lua

local DISPATCH_MS = 1000 -- a reservation reaches the provider within this

if #KEYS ~= 2 or #ARGV ~= 16 then
  bad('a window and its health, and sixteen arguments')
end
local key, age, day_id, day_end = KEYS[1], whole(1, 0), whole(2, 0), whole(3, 0)
local dims = {}
for at = 1, 4 do
  local first = 3 * at + 1
  dims[at] = { limit = whole(first, -1), remaining = whole(first + 1, -1), hold = whole(first + 2, 0) }
end
local now = clock_ms(whole(#ARGV, 0))
if day_id > 0 and (day_end <= now or day_end > now + DAY_MAX_MS) then
  return { 0, DAY_STALE, now }
end

local told, rest = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 0
for _, dim in ipairs(dims) do
  if dim.limit < 0 and dim.remaining == 0 then
    rest = math.max(rest, dim.hold)
  end
end
-- A clock that stepped back, or another kind of day, is for admissions to follow.
local text = call('HGET', key, 'now')
local newest, period = match(text or '', '^(%d+) %d+ %d+ %d+ %d+ (%d+) ')
if text and not match(text, READ) then
  unreadable(1)
end
if newest and newest * SECOND_MS <= now and (period + 0 < CALENDAR_MIN) == (day_id == 0) then
--@include lib/observe_window.lua
end
if rest > 0 then
--@include lib/observe_rest.lua
end
return { 1, OK, unpack(told) }
