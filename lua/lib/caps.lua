-- What a provider caps over all models of one key, by calendar days and months in UTC: a hash.
--   now      '<day yyyymmdd> <its end> <requests> <weighted tokens> <month yyyymm> <its end> <tokens>
--             <quiet>': an end is the first instant after it (ms), quiet as in lib/window.lua
--   @<id>    a lease: '<state> <expiry> <worker> <day> <month> <estimate> <prompt> <weight>'; R or X
-- Weights, and so weighted tokens, are thousandths: whole numbers, so that sums stay exact.
local CAPS_READ = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'
local CAPS_WRITE = '%d %d %d %d %d %d %d %d'
local CAPS_LEASE = '^(%u) (%d+) %S+ (%d+) (%d+) (%d+) (%d+) (%d+)$'
