-- Codes in replies of the cache's scripts, besides those of `codes.lua`.
local FOUND, LEADS, FOLLOW, ALIEN = 'found', 'lead', 'follow', 'alien'
local GAP, OVER, FULL, FLUSHED = 'gap', 'over', 'full', 'flushed'
