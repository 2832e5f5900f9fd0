#!lua
-- @name health/ordered
-- @since 0.1.0
-- @summary Notes that orders are done, and what came of them.
-- @keys 1 orders hash 1day as in health/order; =last: ended at, began at, then how many keys were valid, rejected, unknown
-- @args 1 fence count of the role's term, from 1
-- @args 2 began ms when the pass began
-- @args 3 valid count keys found well
-- @args 4 rejected count keys their provider rejected
-- @args 5 unknown count keys of which nothing was learned
-- @args 6.. scope,ordered_at text,ms two for each order that is done
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', how many of them stood}
-- @returns {0, 'stale', 0} a newer term has begun with one of them
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(orders that are done)
-- @slot {status}
-- What was ordered anew meanwhile stays.
--@include lib/args.lua
--@include lib/clock.lua

local ORDER = '^(%d+) %d+ (%d+)$'
local KEEP_MS = 86400000

local last = #ARGV
if #KEYS ~= 1 or last < 8 or last % 2 ~= 0 then
  bad('one key, five numbers, two for each order, and the time')
end
local fence, began, now = whole(1, 1), whole(2, 0), clock_ms(whole(last, 0))
local counts, done = { whole(3, 0), whole(4, 0), whole(5, 0) }, {}
for at = 6, last - 1, 2 do
  local ordered_at, text = whole(at + 1, 0), call('HGET', KEYS[1], ARGV[at])
  local ordered, by = string.match(text or '', ORDER)
  if text and not ordered then
    unreadable(1)
  end
  if text and by + 0 > fence then
    return { 0, STALE, 0 }
  end
  if text and ordered + 0 == ordered_at then
    done[#done + 1] = ARGV[at]
  end
end
call('HSET', KEYS[1], '=last', string.format('%d %d %d %d %d', now, began, unpack(counts)))
for _, scope in ipairs(done) do
  call('HDEL', KEYS[1], scope)
end
call('PEXPIRE', KEYS[1], KEEP_MS)
return { 1, OK, #done }
