-- Gates of health, and whose trial this admission becomes; inside admission/reserve. KEYS[2] is the
-- target's record, KEYS[3] its key's.
--@include lib/health_fields.lua

for n = 2, 3 do
  local rest_until, breaker, opened_at, until_at, gen, trial_until = unpack(
    call('HMGET', KEYS[n], 'rest_until', 'breaker', 'opened_at', 'until', 'gen', 'trial_until'))
  if not match(format('%s %s %s %s %s', rest_until or 0, opened_at or 0, until_at or 0, gen or 0, trial_until or 0),
    '^%d+ %d+ %d+ %d+ %d+$')
    or (breaker and breaker ~= 'closed' and breaker ~= 'open' and breaker ~= 'half_open') then
    return { err = 'GW_UNREADABLE key ' .. n }
  end
  local place, owes_trial, code, ms = n == 2 and 1 or windows + 1, false, nil, -1
  rest_until, opened_at, until_at = (rest_until or 0) + 0, (opened_at or 0) + 0, (until_at or 0) + 0
  gen, trial_until = (gen or 0) + 0, (trial_until or 0) + 0
  if now < rest_until and rest_until <= now + REST_MAX_MS then
    code, ms = COOLDOWN, rest_until - now
  else
    owes_trial = rest_until > 0
  end
  if breaker == 'open' then
    if opened_at <= now and now < until_at then
      if until_at - now > ms then
        code, ms = BREAKER_OPEN, until_at - now
      end
    else
      owes_trial = true
    end
  elseif breaker == 'half_open' then
    if now < trial_until and trial_until <= now + LEASE_MAX_MS then
      if ms < 0 then
        code, ms = TRIAL_TAKEN, math.min(trial_until - now, TRIAL_RETRY_MS)
      end
    else
      owes_trial = true
    end
  end
  if code and ms > wait then
    gate, scope, wait = code, place, ms
  end
  if owes_trial then
    gen = gen_after(gen)
    trials = trials or {}
    trials[#trials + 1] = KEYS[n]
    trials[#trials + 1] = format('%d', gen)
  end
  generation = n == 2 and gen or generation
end
