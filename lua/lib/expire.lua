-- Taking back what expired leases hold. Looks at every field of the hash, but only when something may
-- have expired: when `now` has come to `quiet`.
local WRITTEN_AT_ONCE = 400 -- far from what unpack can do

-- Gives the field `now` as it is after that, without having moved to the present. `key` is KEYS[place].
local function expire(key, now, place)
  local flat, fields, changed, gone = call('HGETALL', key), {}, {}, {}
  for at = 1, #flat, 2 do
    fields[flat[at]] = flat[at + 1]
  end
  local s, r, t, rs, ts, day, ends, x, y = match(fields.now, READ)
  s, t, ts, day, x, y = s + 0, t + 0, ts + 0, day + 0, x + 0, y + 0
  local count, quiet = 0, NEVER
--@include lib/take_back.lua

  for name, text in pairs(fields) do
    if string.byte(name) == 64 then -- @
      local state, expiry = match(text, '^(%u) (%d+) %S+ %d+ %d+ %d+ %d+ ?%d* ?%d*$')
      if not expiry then
        error({ err = 'GW_UNREADABLE key ' .. place })
      end
      local drop_at = expiry + MARK_MS
      if state ~= 'X' and expiry + 0 <= now then
        take_back(name, text)
        state = 'X'
      end
      if state == 'X' and drop_at <= now then
        gone[#gone + 1], changed[name] = name, nil
      else
        quiet = math.min(quiet, state == 'X' and drop_at or expiry)
        count = state == 'R' and count + 1 or count
      end
    elseif match(name, '^[sd]%d$') then -- before anything is written
      slot_head(text, key)
    end
  end

  changed.now = format(WRITE, s, r, t, rs, ts, day, ends, x, y, count, quiet)
  local sets = {}
  for name, text in pairs(changed) do
    sets[#sets + 1], sets[#sets + 2] = name, text
  end
  for first = 1, #sets, WRITTEN_AT_ONCE do
    call('HSET', key, unpack(sets, first, math.min(first + WRITTEN_AT_ONCE - 1, #sets)))
  end
  for first = 1, #gone, WRITTEN_AT_ONCE do
    call('HDEL', key, unpack(gone, first, math.min(first + WRITTEN_AT_ONCE - 1, #gone)))
  end
  return changed.now
end
