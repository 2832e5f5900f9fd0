#!lua
-- @name health/retire
-- @since 0.1.0
-- @summary Books what a failure proves of its model, or that the model has answered.
-- @keys 1 models hash 30days model -> suspected or retired, proven at (ms), request, reason
-- @args 1 model text without spaces
-- @args 2 proof text definitive, probable, or answered
-- @args 3 request text its id; of an answer the ms at which it was admitted
-- @args 4 reason text of a proof, without spaces
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', status} 0 nothing, 1 suspected, 2 retired, as it is now and was not before
-- @returns {2, 'ok', status} nothing has changed
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by request
-- @complexity O(1)
-- @slot {status}
-- The rules are those of `core/limits/model_status.py`.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local WITHIN_MS, KEEP_MS = 3600000, 2592000000
local STATUSES = { suspected = 1, retired = 2 }

local model, proof, request, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
for at = 1, 4 do
  if not string.match(ARGV[at] or '', '^%S+$') then
    bad('four words without spaces')
  end
end
if #KEYS ~= 1 or #ARGV ~= 5 or not (proof == 'definitive' or proof == 'probable' or proof == 'answered') then
  bad('one key, five arguments, and a proof that is known')
end
local reserved = proof == 'answered' and whole(3, 0)
local now = clock_ms(whole(5, 0))
local text = call('HGET', KEYS[1], model)
local status, at_ms, from = string.match(text or '', '^(%S+) (%d+) (%S+) %S+$')
local before = STATUSES[status] or 0
if text and not status then
  unreadable(1)
end
at_ms = tonumber(at_ms or 0)
local after = 1
if reserved then
  if before == 0 or reserved < at_ms then
    return { 2, OK, before }
  end
  after = 0
  call('HDEL', KEYS[1], model)
elseif before > 0 and from == request and (proof == 'probable' or before == 2) then
  return { 2, OK, before }
else
  local ago = now - at_ms
  if proof == 'definitive' or before == 2 or (before == 1 and ago >= 0 and ago <= WITHIN_MS) then
    after = 2
  end
  call('HSET', KEYS[1], model, string.format('%s %d %s %s', after == 2 and 'retired' or 'suspected', now,
    request, reason))
  call('PEXPIRE', KEYS[1], KEEP_MS)
end
-- Also when it was retired before: the day until it is tried again has begun anew.
tell(string.format('status %d', now))
return { after ~= before and 1 or 2, OK, after }
