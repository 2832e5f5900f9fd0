-- Reading arguments, for scripts that are not called for every request.
--@include lib/codes.lua

-- Ends the call with the error reply that only a bug of the caller can cause.
local function bad(text)
  error({ err = 'GW_BADARG ' .. text })
end

-- Ends the call because of what stands in KEYS[index]: nobody but a person or a fault writes it so.
local function unreadable(index)
  error({ err = 'GW_UNREADABLE key ' .. index })
end

-- A whole number that is stored in KEYS[index], 0 where there is none.
local function stored(text, index)
  if text and not string.match(text, '^%d+$') then
    unreadable(index)
  end
  return tonumber(text or 0)
end

-- ARGV[index] as an integer of at least `low`; refuses anything else before the first write.
local function whole(index, low)
  local number = tonumber(ARGV[index])
  if not number or number % 1 ~= 0 or number < low or number > EXACT_MAX then
    bad('ARGV[' .. index .. '] is not a whole number of at least ' .. low)
  end
  return number
end
