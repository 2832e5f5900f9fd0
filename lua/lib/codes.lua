-- Codes in replies and the one error of these scripts. Gate codes equal the values of
-- `core.limits.windows.Gate`; a test compares them.
local OK, SETTLED, RECLAIMED, LATE = 'ok', 'settled', 'reclaimed', 'late'
local RPM, RPD, TPM, TPD = 'rpm', 'rpd', 'tpm', 'tpd'
local CONCURRENCY, DAY_STALE, TOO_LARGE = 'concurrency', 'day_stale', 'too_large'
local TOO_OLD, ALIVE, HELD, STALE = 'too_old', 'alive', 'held', 'stale'

-- What is used many times in a call is local; what few functions use stays global, since each captured
-- local makes a function dearer to create, and a call creates all of them. Numbers become text by
-- string.format: Redis would print each as a fraction with 17 digits, at several times the cost.
local call, KEYS, ARGV = redis.call, KEYS, ARGV
local EXACT_MAX = 9007199254740992 -- 2^53: above it a Lua number skips integers

-- Ends the call with the error reply that only a bug of the caller can cause.
local function bad(text)
  error({ err = 'GW_BADARG ' .. text })
end

-- ARGV[index] as an integer of at least `low`; refuses anything else before the first write.
local function whole(index, low)
  local number = tonumber(ARGV[index])
  if not number or number % 1 ~= 0 or number < low or number > EXACT_MAX then
    bad('ARGV[' .. index .. '] is not a whole number of at least ' .. low)
  end
  return number
end
