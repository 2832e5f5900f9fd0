-- The lead of a digest: who fetches the answer that others wait for. A hash in KEYS[1]: owner, token
-- (a fence that only grows), until (ms), format of what the owner writes, ears (workers that follow).
local DEAD_MS = 800 -- a followed lead that was not renewed for so long is free: with a look every 0.1 s, in a second
local KEEP_MS = 2000 -- how long the end of a followed lead can be read

-- Whether a call is that of the present lead, or of one that may still take itself for it.
local function is_lead(owner, token)
  local lead = call('HMGET', KEYS[1], 'owner', 'token')
  return lead[1] == owner and stored(lead[2], 1) == token
end

-- Wakes the workers that follow. It may get lost: they look by themselves, too.
local function wake(ears, text)
  local prefix = string.match(KEYS[1], '^[^:]+')
  local digest = string.match(KEYS[1], '{(.-)}')
  for worker in string.gmatch(ears, '%S+') do
    redis.pcall('PUBLISH', prefix .. ':c4n:' .. worker, text .. ' ' .. digest)
  end
end

-- Ends the lead; who follows can read for a while how it ended.
local function free(why)
  local ears = call('HGET', KEYS[1], 'ears') or ''
  if ears == '' then
    call('DEL', KEYS[1])
    return
  end
  call('HSET', KEYS[1], 'until', '0', 'ears', '', 'why', why)
  call('PEXPIRE', KEYS[1], KEEP_MS)
  wake(ears, 'feed')
end
