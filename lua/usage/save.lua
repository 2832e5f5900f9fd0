#!lua
-- @name usage/save
-- @since 0.1.0
-- @summary Adds what the response cache saved lately, as one worker saw it, to what it saved on a day.
-- @keys 1 told string 1day number of the last batch of that worker
-- @keys 2 saved hash 92days '<client> <model>' -> '<hits> <prompt> <completion>', tokens
-- @args 1 number count of the batch: each is greater than the one before
-- @args 2.. whose,hits,prompt,completion text,count,tokens,tokens four for each client and model
-- @returns {1, 'ok'} added; {2, 'ok'} it was added before
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent by the number of the batch: a worker tells the next one when it knows of the last
-- @complexity O(pairs)
-- @slot {usage}
--@include lib/args.lua

local TOLD_MS, KEEP_MS, MOST, REST = 86400000, 7948800000, 2000, '_other _other' -- 1 day; 92 days; fields
if #KEYS ~= 2 or #ARGV < 5 or #ARGV % 4 ~= 1 then
  bad('the number of keys and arguments do not match')
end
local number = whole(1, 1)
if stored(call('GET', KEYS[1]), 1) >= number then
  return { 2, OK }
end
local rows, held = {}, call('HLEN', KEYS[2])
local is_first = held == 0
for at = 2, #ARGV, 4 do
  local hits, prompt, completion = whole(at + 1, 0), whole(at + 2, 0), whole(at + 3, 0)
  local whose = ARGV[at]
  local text = call('HGET', KEYS[2], whose)
  if not text and not rows[whose] then
    if held >= MOST then
      whose = REST
      text = call('HGET', KEYS[2], whose)
    else
      held = held + 1
    end
  end
  local row = rows[whose]
  if not row then
    local one, two, three = string.match(text or '0 0 0', '^(%d+) (%d+) (%d+)$')
    if not one then
      unreadable(2)
    end
    row = { one + 0, two + 0, three + 0 }
    rows[whose] = row
  end
  row[1], row[2], row[3] = row[1] + hits, row[2] + prompt, row[3] + completion
end
for whose, row in pairs(rows) do
  call('HSET', KEYS[2], whose, string.format('%d %d %d', row[1], row[2], row[3]))
end
if is_first then
  call('PEXPIRE', KEYS[2], KEEP_MS)
end
call('SET', KEYS[1], string.format('%d', number), 'PX', TOLD_MS)
return { 1, OK }
