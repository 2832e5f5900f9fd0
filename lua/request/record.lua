#!lua
-- @name request/record
-- @since 0.1.0
-- @summary Keeps what is told of a request, and lets go of the oldest ones.
-- @keys 1 order zset argument request id -> when it was kept
-- @keys 2 records hash argument request id -> what is told of it
-- @args 1 id text of the request
-- @args 2 record text what is told
-- @args 3 most count how many are kept here
-- @args 4 ttl ms how long each is kept
-- @args 5 now_ms ms 0 for the server's clock
-- @returns {1, 'ok', forgotten} how many went
-- @errors GW_BADARG
-- @idempotent by id
-- @complexity O(log n + forgotten); at most nine go in a call
-- @slot {req}
--@include lib/args.lua
--@include lib/clock.lua

local FORGOTTEN_AT_ONCE = 8
local id, record, most, ttl = ARGV[1], ARGV[2], whole(3, 1), whole(4, 1)
if #KEYS ~= 2 or #ARGV ~= 5 or id == '' or record == '' then
  bad('two keys and five arguments')
end
local now = clock_ms(whole(5, 0))

call('ZADD', KEYS[1], string.format('%d', now), id)
call('HSET', KEYS[2], id, record)
local above = call('ZCARD', KEYS[1]) - most
local gone = {}
if above > 0 then
  gone = call('ZRANGE', KEYS[1], '0', string.format('%d', math.min(above, FORGOTTEN_AT_ONCE + 1) - 1))
else
  gone = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now - ttl), 'LIMIT', '0',
    string.format('%d', FORGOTTEN_AT_ONCE))
end
if gone[1] then
  call('ZREM', KEYS[1], unpack(gone))
  call('HDEL', KEYS[2], unpack(gone))
end
call('PEXPIRE', KEYS[1], ttl)
call('PEXPIRE', KEYS[2], ttl)
return { 1, OK, #gone }
