#!lua
-- @name snapshot/look
-- @since 0.1.0
-- @summary Reads what some records of one slot say now, for the snapshot.
-- @keys 1.. record hash argument windows, health records and statistics
-- @args 1 kinds text a letter for each key: w window, h health, b statistics
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', now_ms, text, ...}: for each key its text, empty where there is none;
-- w: its field now, less what has left since the second it tells; h: all fields, `name value` in lines;
-- b: now, older, edge and month in lines; when the newest bucket is over, then p0 to p3 as they are
-- @errors GW_BADARG
-- @idempotent reads only
-- @complexity O(keys), and for each window up to 61 seconds and 24 hours since it was used
-- @slot {provider.account}
--@include lib/args.lua
--@include lib/clock.lua

local KEYS_MAX, BUCKET_MS = 64, 21600000 -- a call must not take long; six hours
local WINDOW, STATISTICS = 119, 98 -- w, b

if #ARGV ~= 2 or #KEYS < 1 or #KEYS > KEYS_MAX or not string.match(ARGV[1], '^[whb]+$')
  or #ARGV[1] ~= #KEYS then
  bad('one to 64 keys and a letter for each')
end
local now = clock_ms(whole(2, 0))

--@include lib/window.lua
--@include lib/ring.lua
--@include lib/left.lua
local function all_of(key)
  local flat, lines = call('HGETALL', key), {}
  for at = 1, #flat, 2 do
    lines[#lines + 1] = flat[at] .. ' ' .. flat[at + 1]
  end
  return table.concat(lines, '\n')
end

local function statistics_of(key)
  local values = call('HMGET', key, 'now', 'older', 'edge', 'month')
  local bucket = values[1] and string.match(values[1], '^%d+')
  if not bucket then
    return ''
  end
  local lines = { values[1], values[2] or '', values[3] or '', values[4] or '' }
  if now >= (bucket + 1) * BUCKET_MS then
    local past = call('HMGET', key, 'p0', 'p1', 'p2', 'p3')
    lines[5] = (past[1] or '') .. (past[2] or '') .. (past[3] or '') .. (past[4] or '')
  end
  return table.concat(lines, '\n')
end

local texts = {}
for n = 1, #KEYS do
  local kind, key = string.byte(ARGV[1], n), KEYS[n]
  if kind == WINDOW then
    texts[n] = window_of(key, call('HGET', key, 'now') or '')
  elseif kind == STATISTICS then
    texts[n] = statistics_of(key)
  else
    texts[n] = all_of(key)
  end
end
return { 1, OK, now, unpack(texts) }
