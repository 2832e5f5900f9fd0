-- A conservative ring: every bucket that may still hold something of the last window counts whole,
-- so no span of that length ever holds more than the limit. Fields of the window's hash: the ring's
-- name holds its newest bucket and the sums, name..slot the bucket of that slot (bucket number
-- modulo size). All are '<bucket> <requests> <tokens>'. A slot may hold a bucket that has long left;
-- its number tells, so nothing is ever cleared.
-- 62 seconds: 60, one because a bucket is counted whole, one because dispatch may take a second.
local MINUTE = { name = 'm', size = 62, unit = 1000 }
local HOURS = { name = 'h', size = 25, unit = 3600000 } -- 24, and one because an hour counts whole

local function triple_read(text)
  local bucket, requests, tokens = string.match(text, '(%S+) (%S+) (%S+)')
  return tonumber(bucket), tonumber(requests), tonumber(tokens)
end

local function triple_write(bucket, requests, tokens)
  return string.format('%d %d %d', bucket, requests, tokens)
end

-- Requests and tokens of `bucket` by the text of its slot: none when another bucket is there.
local function slot_read(text, bucket)
  if text then
    local held, requests, tokens = triple_read(text)
    if held == bucket then
      return requests, tokens
    end
  end
  return 0, 0
end

-- The texts of the slots of buckets `first` to `last`.
local function slots_get(key, kind, first, last)
  local names = {}
  for bucket = first, last do
    names[#names + 1] = kind.name .. bucket % kind.size
  end
  return call('HMGET', key, unpack(names))
end
