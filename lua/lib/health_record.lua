-- A record of health as numbers and texts, and back; inside lib/health_settle.lua.
--@include lib/health_fields.lua
local NUMBERS = { 'rest_until', 'rest_set_at', 'limited_at', 'fails', 'opened_at', 'until', 'gen', 'trial_until',
  'streak', 'streak_at' }
local TEXTS = { 'rest_source', 'rest_reason', 'hits', 'breaker', 'trial' }

local function health_read(flat)
  local record = {}
  for at = 1, #flat, 2 do
    record[flat[at]] = flat[at + 1]
  end
  for _, name in ipairs(NUMBERS) do
    record[name] = (record[name] or 0) + 0
  end
  for _, name in ipairs(TEXTS) do
    record[name] = record[name] or ''
  end
  return record
end

-- The fields that say something, and their values.
local function health_pairs(record)
  local sets = {}
  for _, name in ipairs(NUMBERS) do
    if record[name] > 0 then
      sets[#sets + 1], sets[#sets + 2] = name, format('%d', record[name])
    end
  end
  for _, name in ipairs(TEXTS) do
    if record[name] ~= '' then
      sets[#sets + 1], sets[#sets + 2] = name, record[name]
    end
  end
  return sets
end

-- Stores what differs from `before`. A record that says nothing goes; one that only fences late
-- results stays as long as those can come.
local function health_write(key, record, before)
  local sets = health_pairs(record)
  if table.concat(sets, ' ') == table.concat(before, ' ') then
    return
  end
  call('DEL', key)
  if sets[1] then
    local is_calm = record.rest_until + record.limited_at + record.fails == 0 and record.hits == ''
      and record.breaker ~= 'open' and record.breaker ~= 'half_open'
    call('HSET', key, unpack(sets))
    call('PEXPIRE', key, is_calm and KEEP_MS or HEALTH_KEEP_MS)
  end
end
