-- How the end of a lease moves a breaker; inside lib/health_settle.lua. Only the holder of the trial
-- moves a half-open one, only leases of the present generation a closed one: all else came too late.
local function breaker_open(record)
  record.breaker, record.opened_at, record.gen = 'open', now, gen_after(record.gen)
  record.fails, record['until'] = record.fails + 1, now + outcome.cooldown_ms
  record.trial, record.trial_until = '', 0
end

local function breaker_step(record, evidence)
  if record.breaker == 'half_open' then
    if record.trial ~= lease_id then
      return
    end
    record.trial, record.trial_until = '', 0
    if evidence == 'success' then
      record.breaker, record.fails, record.gen = 'closed', 0, gen_after(record.gen)
      record['until'] = 0
    elseif evidence == 'failure' then
      breaker_open(record)
    end
  elseif record.breaker ~= 'open' and record.gen == outcome.generation then
    if evidence == 'success' then
      record.fails = 0
    elseif evidence == 'failure' then
      if record.fails + 1 >= outcome.threshold then
        breaker_open(record)
      else
        record.fails = record.fails + 1
      end
    end
  end
end
