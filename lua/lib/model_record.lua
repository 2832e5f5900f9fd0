-- The record of a model over all its keys: a hash. Times are ms.
--   points, points_since, points_by, hits   its penalty, from when on it decays, who last raised it, how often
--   failures      those that count: '<lease> <at> <key> <code>' each, oldest first
--   bench_until, bench_set_at, bench_by   its bench: its end, when it was set, and by which failures
-- `core/limits/penalty.py` and `core/limits/bench.py` are the rules; who is '<key>:<code>'.
local FENCE_MS = 4800000 -- 80 min: no lease reports later

local function model_number(value) -- as text: replies hold whole numbers only, and `..` would keep 14 digits
  return string.format('%.17g', value)
end

local function model_read(key, index)
  local points, since, points_by, hits, failures, bench_until, bench_set_at, bench_by =
    unpack(call('HMGET', key, 'points', 'points_since', 'points_by', 'hits', 'failures', 'bench_until',
      'bench_set_at', 'bench_by'))
  local record = {
    points = tonumber(points or 0), points_since = stored(since, index), points_by = points_by or '',
    hits = stored(hits, index), failures = {}, bench_until = stored(bench_until, index),
    bench_set_at = stored(bench_set_at, index), bench_by = bench_by or '',
  }
  for lease, at, of, why in string.gmatch(failures or '', '(%S+) (%d+) (%S+) (%S+)') do
    record.failures[#record.failures + 1] = { lease = lease, at = tonumber(at), by = of, code = why }
  end
  if not record.points or 4 * #record.failures ~= select(2, string.gsub(failures or '', '%S+', '')) then
    unreadable(index)
  end
  return record
end

--@include lib/model_change.lua

-- Stores all of a record, for as long as something of it counts; one that says nothing goes.
local function model_write(key, record)
  local sets, keep, texts = {}, 0, {}
  local function add(ms, ...)
    keep = math.max(keep, ms)
    for _, text in ipairs({ ... }) do
      sets[#sets + 1] = text
    end
  end
  for at, failure in ipairs(record.failures) do
    texts[at] = string.format('%s %d %s %s', failure.lease, failure.at, failure.by, failure.code)
  end
  if record.points > 0 then
    add(math.ceil(record.points * decay), 'points', model_number(record.points), 'points_since',
      string.format('%d', record.points_since), 'points_by', record.points_by, 'hits', string.format('%d', record.hits))
  end
  if texts[1] then
    add(math.ceil(within), 'failures', table.concat(texts, ' '))
  end
  if record.bench_set_at > 0 then
    add(math.max(record.bench_until - now, FENCE_MS), 'bench_until', string.format('%d', record.bench_until),
      'bench_set_at', string.format('%d', record.bench_set_at), 'bench_by', record.bench_by)
  end
  call('DEL', key)
  if sets[1] then
    call('HSET', key, unpack(sets))
    call('PEXPIRE', key, string.format('%d', keep + MARK_MS))
  end
end
