-- What a failure and a success change in a model's record; inside lib/model_record.lua.
local KEYS_MIN = 2 -- failures of one key alone are for its breaker

local function model_points(record)
  local periods = math.max(0, math.floor((now - record.points_since) / decay))
  local current = math.min(math.max(0, record.points - periods), most)
  local after = math.min(math.max(0, current + points), most)
  if after == 0 then
    record.points, record.points_since, record.points_by, record.hits = 0, 0, '', 0
  elseif points > 0 then
    record.points, record.points_since, record.points_by = after, now, by .. ':' .. code
    record.hits = (current > 0 and record.hits or 0) + 1
  else
    record.points = after
    record.points_since = math.min(record.points_since + math.ceil(periods * decay), now)
  end
end

local function model_is_same_incident(record)
  return reserved_at <= record.bench_set_at and record.bench_set_at <= now
end

-- The failures that still count, this one among them; 1 when it benches the model.
local function model_fail(record)
  local recent, is_known = {}, model_is_same_incident(record)
  for _, failure in ipairs(record.failures) do
    if math.abs(now - failure.at) < within then
      recent[#recent + 1] = failure
      is_known = is_known or failure.lease == lease_id
    end
  end
  record.failures = recent
  if is_known then
    return 0
  end
  recent[#recent + 1] = { lease = lease_id, at = now, by = by, code = code }
  while #recent > bench_failures do
    table.remove(recent, 1)
  end
  local names, keys, seen = {}, 0, {}
  for at, failure in ipairs(recent) do
    names[at] = failure.by .. ':' .. failure.code
    keys, seen[failure.by] = keys + (seen[failure.by] and 0 or 1), true
  end
  if #recent < bench_failures or keys < math.min(KEYS_MIN, bench_failures) then
    return 0
  end
  local is_benched = now < record.bench_until and record.bench_until <= now + LONGEST_MS
  record.bench_until = math.max(is_benched and record.bench_until or 0, now + rest)
  record.bench_set_at, record.bench_by, record.failures = now, table.concat(names, ' '), {}
  return 1
end

-- A success clears the failures; a bench ends by itself.
local function model_recover(record)
  if not model_is_same_incident(record) then
    record.failures = {}
  end
end
