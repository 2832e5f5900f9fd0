#!lua
-- @name idempotency/ask
-- @since 0.1.0
-- @summary Takes an idempotency key for one call, or tells what is known of the call that has it.
-- @keys 1 record hash argument body, token, owner, until (ms), state, and the sealed answer once kept
-- @keys 2 feed list 10min sealed pieces of an answer that is still coming
-- @args 1 body text digest of the request
-- @args 2 owner text the worker that asks
-- @args 3 lease ms how long the key is held unless `go_on` says more; at most a minute
-- @args 4 may_take flag 0 only looks
-- @args 5 token count of the call that is followed; 0 for whichever has the key
-- @args 6 from count pieces of the feed that are known already; 4294967295 for none wanted
-- @args 7 most count pieces that are given at once
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', token} taken; {2, 'kept', token, answer} this very request was answered before
-- @returns {0, 'held', token, ms left, piece...} another call of this request has it; {0, 'conflict'}: of another
-- @returns {0, 'none'} nobody has it, and it was not to be taken
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: repeated, a call finds its own token held, and waits for the lease to end
-- @complexity O(pieces given)
-- @slot {digest}
-- A token is greater than all before it, also when the record was lost: it is at least the time at
-- which it was given. A freed call leaves its token for a minute, a dead one for ten minutes, so that no follower
-- takes the next feed for the one it read.
--@include lib/args.lua
--@include lib/clock.lua

local LEASE_MAX_MS = 60000
local AFTER_MS = 540000
local NO_PIECES = 4294967295
local HELD_STATE, KEPT_STATE = 'held', 'kept'

local body, owner, lease = ARGV[1], ARGV[2], whole(3, 1)
local may_take, followed, from, most = whole(4, 0), whole(5, 0), whole(6, 0), whole(7, 1)
if #KEYS ~= 2 or #ARGV ~= 8 or body == '' or owner == '' or lease > LEASE_MAX_MS or may_take > 1 then
  bad('two keys and eight arguments; a lease is at most a minute')
end
local now = clock_ms(whole(8, 0))
local found = call('HMGET', KEYS[1], 'body', 'token', 'until', 'state', 'answer', 'followed')
local token, state = stored(found[2], 1), found[4]
if state == KEPT_STATE then
  if found[1] ~= body then
    return { 0, 'conflict' }
  end
  if not found[5] then
    unreadable(1)
  end
  return { 2, KEPT_STATE, token, found[5] }
end
local left = stored(found[3], 1) - now
local is_held = state == HELD_STATE and left > 0 and left <= LEASE_MAX_MS -- longer: the clock stepped back
if state == HELD_STATE and found[1] ~= body then
  return { 0, 'conflict' }
end
if is_held then
  local pieces = {}
  if from < NO_PIECES and (followed == 0 or followed == token) then
    if not found[6] then
      call('HSET', KEYS[1], 'followed', '1')
    end
    pieces = call('LRANGE', KEYS[2], from, from + most - 1)
  end
  return { 0, HELD, token, left, unpack(pieces) }
end
if may_take == 0 then
  return { 0, NONE }
end
token = math.max(token + 1, now)
call('DEL', KEYS[1], KEYS[2])
call('HSET', KEYS[1], 'body', body, 'token', string.format('%d', token), 'owner', owner,
  'until', string.format('%d', now + lease), 'state', HELD_STATE)
call('PEXPIRE', KEYS[1], lease + AFTER_MS)
return { 1, OK, token }
