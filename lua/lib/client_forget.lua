-- What is written besides, once a second at most; inside client/hold.
if sets[1] then
  call('HSET', key, unpack(sets))
end
local lz, moved, lapped = cz, rs, nil
--@include lib/forget.lua
if is_lap then
  call('PEXPIRE', key, CLIENT_KEEP_MS)
  call('PEXPIRE', cz, KEEP_MS)
end
