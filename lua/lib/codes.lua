-- Codes in replies. Gate codes equal the values of `core.limits.windows.Gate`; a test compares them.
local OK, SETTLED, RECLAIMED, LATE = 'ok', 'settled', 'reclaimed', 'late'
local RPM, RPD, TPM, TPD = 'rpm', 'rpd', 'tpm', 'tpd'
local CONCURRENCY, DAY_STALE, TOO_LARGE = 'concurrency', 'day_stale', 'too_large'
local COOLDOWN, BREAKER_OPEN, TRIAL_TAKEN = 'cooldown', 'breaker_open', 'trial_taken'
local BENCH, PROVIDER_OPEN = 'bench', 'provider_open'
local DAILY_CAP, DAILY_TOKEN_CAP = 'provider_daily_cap', 'provider_daily_token_cap'
local MONTHLY_CAP = 'monthly_budget_cap'
local TOO_OLD, ALIVE, HELD, STALE, NONE = 'too_old', 'alive', 'held', 'stale', 'none'

local call, KEYS, ARGV = redis.call, KEYS, ARGV
local EXACT_MAX = 9007199254740992 -- 2^53: above it a Lua number skips integers
