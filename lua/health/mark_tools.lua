#!lua
-- @name health/mark_tools
-- @since 0.1.0
-- @summary Books that a model has refused tools, or answered a request that had some.
-- @keys 1 marks hash 1day model -> when it refused (ms)
-- @args 1 model text without spaces
-- @args 2 said text refused or answered
-- @args 3 reserved ms when the answered request was admitted; 0 for a refusal
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', is_new} 1 if this was not known before
-- @returns {2, 'ok', 0} nothing has changed
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent yes
-- @complexity O(1)
-- @slot {status}
-- The rules are those of `core/limits/tool_marks.py`.
--@include lib/args.lua
--@include lib/clock.lua
--@include lib/tell.lua

local RECENT_MS, KEEP_MS = 3600000, 86400000

local model, said, reserved = ARGV[1], ARGV[2], whole(3, 0)
if #KEYS ~= 1 or #ARGV ~= 4 or not string.match(model or '', '^%S+$') or
  not (said == 'refused' or said == 'answered') then
  bad('one key, four arguments: a word, and what is known to be said')
end
local now = clock_ms(whole(4, 0))
local text = call('HGET', KEYS[1], model)
local refused = stored(text, 1)
if said == 'answered' then
  if not text or reserved < refused then
    return { 2, OK, 0 }
  end
  call('HDEL', KEYS[1], model)
  tell(string.format('status %d', now))
  return { 1, OK, 1 }
end
local ago = now - refused
local is_new = (not text or ago < 0 or ago >= RECENT_MS) and 1 or 0
call('HSET', KEYS[1], model, string.format('%d', now))
call('PEXPIRE', KEYS[1], KEEP_MS)
if is_new == 1 then
  tell(string.format('status %d', now))
end
return { 1, OK, is_new }
