#!lua
-- @name health/report
-- @since 0.1.0
-- @summary Books what the end of a lease says of its whole provider: opens and closes its breaker.
-- @keys 1 hz zset 20min lease id -> when it may be forgotten
-- @keys 2 outage hash 1day the provider's record: lib/outage_record.lua has the fields
-- @args 1 lease_id text the operation id; - for a success that is told without one
-- @args 2 sign text success, failure or neutral
-- @args 3 target text what was called, without spaces
-- @args 4 reserved_at ms when the lease was reserved, 0 when unknown
-- @args 5 succeeded_ago ms how long ago this worker last saw a success there, -1 for never
-- @args 6 rest ms how long an open provider lets nothing through
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', 1 when this end opened it or 0, now_ms, state, ms until it lets a trial through, targets that failed lately}
-- @returns {2, 'ok', 0, ..} the same when it was booked before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by lease id, for 10 min
-- @complexity O(log leases of 10 min)
-- @slot {provider}
--@include lib/args.lua
--@include lib/clock.lua

local MARK_MS, MARKS_KEEP_MS, REST_MAX_MS = 600000, 1200000, 86400000

if #KEYS ~= 2 or #ARGV ~= 7 then
  bad('two keys and seven arguments')
end
local lease_id, sign, target, ago = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
local reserved_at, rest = whole(4, 0), whole(6, 1)
if lease_id == '' or not string.match(target, '^%S+$') or not ago or ago % 1 ~= 0 or ago < -1
  or rest > REST_MAX_MS or (sign ~= 'success' and sign ~= 'failure' and sign ~= 'neutral') then
  bad('lease id, sign, target, succeeded_ago or rest')
end
local now = clock_ms(whole(7, 0))
--@include lib/tell.lua
--@include lib/outage_record.lua
--@include lib/outage_change.lua

local outage = outage_read(KEYS[2], 2)
local before, _, failed_before = outage_standing(outage)
local mark, opened = lease_id .. '/p', 0
local is_new = lease_id == '-' or call('ZADD', KEYS[1], 'NX', string.format('%d', now + MARK_MS), mark) == 1
if is_new then
  if ago >= 0 and (sign ~= 'failure' or before == 'closed') then
    outage = outage_succeed(outage, now - ago)
  end
  if sign == 'success' then
    outage = outage_succeed(outage, now)
  elseif sign == 'failure' then
    outage = outage_fail(outage)
  else
    outage_release(outage)
  end
  if lease_id ~= '-' then
    call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now))
    call('PEXPIRE', KEYS[1], MARKS_KEEP_MS)
  end
  outage_write(KEYS[2], outage)
end
local state, wait, failed = outage_standing(outage)
if is_new and (state ~= before or failed ~= failed_before) then
  opened = (state == 'open' and before ~= 'open') and 1 or 0
  outage_tell(KEYS[2], outage)
end
return { is_new and 1 or 2, OK, opened, now, state, wait, failed }
