-- The record of a provider: a hash. Times are ms; `core/limits/outage.py` is the rule.
--   state         closed (or no field), open or half_open
--   failed        '<target> <at>' of distinct targets that failed lately, in order
--   succeeded_at  the last success that anybody told of
--   changed_at    when it opened or closed last; until: when an open one lets a trial through
--   trial, trial_until, trial_worker   the lease that tries it, until when at most, and whose it is
local TARGETS_MIN, WITHIN_MS, TRIAL_MAX_MS = 3, 30000, 3600000
local SHORT_MS, FENCE_MS, LONG_MS = 60000, 4800000, 86400000 -- 80 min: no lease reports later

local function outage_read(key, index)
  local state, failed, succeeded_at, changed_at, until_at, trial, trial_until, trial_worker =
    unpack(call('HMGET', key, 'state', 'failed', 'succeeded_at', 'changed_at', 'until', 'trial',
      'trial_until', 'trial_worker'))
  local outage = {
    state = state or 'closed', failed = {}, succeeded_at = stored(succeeded_at, index),
    changed_at = stored(changed_at, index), until_at = stored(until_at, index), trial = trial or '',
    trial_until = stored(trial_until, index), trial_worker = trial_worker or '',
  }
  local _, words = string.gsub(failed or '', '%S+', '')
  for target, at in string.gmatch(failed or '', '(%S+) (%d+)') do
    outage.failed[#outage.failed + 1] = { target = target, at = tonumber(at) }
  end
  if 2 * #outage.failed ~= words or (outage.state ~= 'closed' and outage.state ~= 'open'
    and outage.state ~= 'half_open') then
    unreadable(index)
  end
  return outage
end

local function outage_write(key, outage)
  local sets, failed = {}, {}
  for at, one in ipairs(outage.failed) do
    failed[at] = string.format('%s %d', one.target, one.at)
  end
  for name, text in pairs({
    state = outage.state ~= 'closed' and outage.state or '', failed = table.concat(failed, ' '),
    trial = outage.trial, trial_worker = outage.trial_worker,
  }) do
    if text ~= '' then
      sets[#sets + 1], sets[#sets + 2] = name, text
    end
  end
  for name, number in pairs({
    succeeded_at = outage.succeeded_at, changed_at = outage.changed_at, ['until'] = outage.until_at,
    trial_until = outage.trial_until,
  }) do
    if number > 0 then
      sets[#sets + 1], sets[#sets + 2] = name, string.format('%d', number)
    end
  end
  call('DEL', key)
  if sets[1] then
    local keep = outage.state ~= 'closed' and LONG_MS or outage.changed_at > 0 and FENCE_MS or SHORT_MS
    call('HSET', key, unpack(sets))
    call('PEXPIRE', key, keep)
  end
end

--@include lib/outage_told.lua
