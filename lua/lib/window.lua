-- The hash of a window, or of a client:
--   now      '<second> <requests> <tokens> <minute's requests> <minute's tokens>
--             <period> <its end> <its requests> <its tokens> <in flight> <quiet>': the newest second
--            and what it holds so far, the sums of the minute, then of the period, then how many
--            leases hold a slot, and until when (ms) none of them expires. The period is an hour
--            (its number; the sums are those of 25 hours), a calendar day (yyyymmdd) or, of a client,
--            a month (yyyymm, tokens, micro-USD); its end is the first instant after it (ms).
--   s0..s8   seconds that are over, eight (number / 8) in the field of that number modulo 9: a byte that
--            says how many each takes (6, 9 or 14), four with the number of the eight, then requests
--            and tokens of each (2 and 4, 4 and 5, or 7 and 7 bytes, little-endian)
--   d0..d3   the same of hours, in 4 fields
--   @<id>    a lease: '<state> <expiry> <worker> <second> <period> <estimate> <prompt>', of a client
--            also '<cost> <kept>': where it was counted, what is reserved and what of it stays when it
--            expires. R: in flight; F: so, but its slot was freed, as its worker was dead; X: expired
--            and taken back, for a settlement that still comes.
-- Buckets that have left are recognised by their number, so nothing is cleared. The frequent
-- call reads and writes `now` and its lease; what it does not need is in the branches that include it.
local SECONDS, HOURS = 62, 25 -- 60 and 24; why more: decision 0007
local SECOND_FIELDS, HOUR_FIELDS = 9, 4 -- as many eights as these may touch
local SECOND_MS, HOUR_MS = 1000, 3600000
local CALENDAR_MIN = 10000000 -- the number of an hour is below it, a calendar day above
local NEVER = 9999999999999
local MARK_MS = 600000 -- how long a lease is remembered after it was settled or has expired
local LEASE_MAX_MS = 3600000
local KEEP_MS = 4800000 -- the two together, and ten minutes
local WINDOW_KEEP_MS, CLIENT_KEEP_MS, HEALTH_KEEP_MS = 97200000, 2764800000, 194400000 -- 27 h; 32 days; 54 h
local DAY_MAX_MS = 93600000 -- 26 h: no zone has a longer day, so a later end is a wrong clock

local match, format = string.match, string.format
local READ = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'
local WRITE = '%s %d %d %d %d %s %s %d %d %d %s' -- %s: not above 14 digits, and mostly text already
local WRITE_TOKENS = '%s %s %s %s %d %s %s %s %d %d %s' -- when no number of requests changes
