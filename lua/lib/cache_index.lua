-- The index of what is stored: KEYS[1] members by their last use (ms), KEYS[2] what is known of each and
-- the sums of all, KEYS[3] members by when they end (ms), KEYS[4] members that are to be deleted, by since
-- when (ms). A member is a key without its prefix; its field is `size client model`.
local INDEX_KEEP_MS = 3456000000 -- 40 days
local DOOMED_MS = 1000 -- whoever was told of it has had its time
local DOOMED_AT_ONCE = 16
local MEMBER = '^%w+:{[^{}]+}$'

local function size_of(field)
  return tonumber(string.match(field or '', '^%d+') or 0)
end

-- Takes members out of the index; gives their bytes. They are not deleted by that.
local function forget(members)
  local freed = 0
  if members[1] then
    for _, field in ipairs(call('HMGET', KEYS[2], unpack(members))) do
      freed = freed + size_of(field)
    end
    call('ZREM', KEYS[1], unpack(members))
    call('HDEL', KEYS[2], unpack(members))
    call('ZREM', KEYS[3], unpack(members))
  end
  return freed
end

-- Notes that members must be deleted, by whoever is told of them.
local function doom(members, now)
  for _, member in ipairs(members) do
    call('ZADD', KEYS[4], string.format('%d', now), member)
  end
end

-- Adds to `victims` some that nobody has deleted although they were told to.
local function name_again(victims, now)
  for _, name in ipairs(call('ZRANGEBYSCORE', KEYS[4], '-inf', string.format('%d', now - DOOMED_MS), 'LIMIT',
    '0', string.format('%d', DOOMED_AT_ONCE))) do
    victims[#victims + 1] = name
    doom({ name }, now)
  end
end

local function keep_index()
  for _, key in ipairs(KEYS) do
    call('PEXPIRE', key, INDEX_KEEP_MS)
  end
end
