-- How ends of leases change a provider's record; inside health/report.lua.

local function outage_opened(outage)
  return {
    state = 'open', failed = outage.failed, succeeded_at = outage.succeeded_at, changed_at = now,
    until_at = now + rest, trial = '', trial_until = 0, trial_worker = '',
  }
end

local function outage_fail(outage)
  if outage.state ~= 'closed' then
    return outage.trial == lease_id and outage_opened(outage) or outage
  end
  if reserved_at <= outage.changed_at and outage.changed_at <= now then
    return outage
  end
  local failed = {}
  for _, one in ipairs(outage.failed) do
    if outage_is_lately(one.at) and one.target ~= target then
      failed[#failed + 1] = one
    end
  end
  failed[#failed + 1] = { target = target, at = now }
  if #failed > TARGETS_MIN then
    table.remove(failed, 1)
  end
  outage.failed = failed
  if #failed < TARGETS_MIN then
    return outage
  end
  return outage_opened(outage)
end

local function outage_succeed(outage, at)
  if outage.state == 'closed' then
    local failed = {}
    for _, one in ipairs(outage.failed) do
      if outage_is_lately(one.at) and one.at > at then
        failed[#failed + 1] = one
      end
    end
    outage.failed, outage.succeeded_at = failed, at
    return outage
  end
  local first = outage.failed[1] and outage.failed[1].at or outage.changed_at
  if at <= first and first <= now then
    return outage
  end
  return {
    state = 'closed', failed = {}, succeeded_at = at, changed_at = now, until_at = 0, trial = '',
    trial_until = 0, trial_worker = '',
  }
end

local function outage_release(outage)
  if outage.state == 'half_open' and outage.trial == lease_id then
    outage.trial, outage.trial_until, outage.trial_worker = '', 0, ''
  end
end
