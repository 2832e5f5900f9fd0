-- The admission is the trial of these records until its lease expires; inside admission/reserve.
for n = 1, #trials, 2 do
  call('HSET', trials[n], 'breaker', 'half_open', 'gen', trials[n + 1], 'trial', lease_id,
    'trial_until', format('%d', expiry))
  call('PEXPIRE', trials[n], HEALTH_KEEP_MS)
end
