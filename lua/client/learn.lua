#!lua
-- @name client/learn
-- @since 0.1.0
-- @summary Adds what a worker has seen of estimates to what is known of one client, route by route.
-- @keys 1.. learned hash 14days decayed sums of a client's requests to a route
-- @args 1.. sums text seven decimal numbers for each key, in the order of its fields
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'ok', sums as of now for each key}
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: a repeated call teaches twice; the caller never repeats it, and a lost one is lost
-- @complexity O(routes)
-- @slot {client}
-- Fields of a record, after `at` (ms, when they were as they are): requests, then of input and of output
-- tokens what was guessed, what was used, and the squares of that over the guess.
-- `core/limits/estimate.py` has the rules, in the same words.
--@include lib/codes.lua
--@include lib/clock.lua

local HALF_LIFE_MS, MOST_REQUESTS, LEARNED_KEEP_MS = 86400000, 1000, 1209600000
local FIELDS = { 'requests', 'in_guessed', 'in_used', 'in_squares', 'out_guessed', 'out_used', 'out_squares' }

if #KEYS < 1 or #ARGV ~= #KEYS + 1 then
  return { err = 'GW_BADARG the number of keys and arguments do not match' }
end
local lessons = {}
for n = 1, #KEYS do
  lessons[n] = {}
  for word in string.gmatch(ARGV[n], '%S+') do
    local number = tonumber(word)
    if not number or not (number >= 0 and number <= EXACT_MAX) then
      return { err = 'GW_BADARG a sum' }
    end
    lessons[n][#lessons[n] + 1] = number
  end
  if #lessons[n] ~= #FIELDS then
    return { err = 'GW_BADARG seven sums for each key' }
  end
end
local now = tonumber(ARGV[#ARGV])
if not now or now < 0 or now % 1 ~= 0 then
  return { err = 'GW_BADARG now_ms' }
end
now = clock_ms(now)

local told = { 1, OK }
for n, lesson in ipairs(lessons) do
  local key = KEYS[n]
  local held = call('HMGET', key, 'at', unpack(FIELDS))
  for _, text in ipairs(held) do
    if text and not tonumber(text) then
      return { err = 'GW_UNREADABLE key ' .. n }
    end
  end
  local passed = math.max(now - (held[1] or now), 0)
  local factor, sums = 0.5 ^ (passed / HALF_LIFE_MS), {}
  for at = 1, #FIELDS do
    sums[at] = (held[at + 1] or 0) * factor + lesson[at]
  end
  local scale = sums[1] > MOST_REQUESTS and MOST_REQUESTS / sums[1] or 1
  local flat = { 'at', string.format('%d', now) }
  for at, name in ipairs(FIELDS) do
    sums[at] = string.format('%.3f', sums[at] * scale)
    flat[#flat + 1], flat[#flat + 2] = name, sums[at]
  end
  if lesson[1] > 0 then -- who only asks writes nothing
    call('HSET', key, unpack(flat))
    call('PEXPIRE', key, LEARNED_KEEP_MS)
  end
  told[n + 2] = table.concat(sums, ' ')
end
return told
