-- What the end of a lease says about its target and its key; inside admission/settle.
--@include lib/health_record.lua
--@include lib/health_rest.lua
--@include lib/health_breaker.lua
--@include lib/health_tell.lua
--@include lib/health_streak.lua

-- A key over all its models only rests: a sick model says nothing about the others.
for n = 2, 3 do
  local record = health_read(outcome.records[n])
  local before = health_pairs(record)
  if n == 2 then
    streak_step(record)
  end
  local evidence = outcome.evidence
  local code_before, ends_before = bar_of(record)
  local breaker_before = record.breaker
  if outcome.subject == (n == 2 and 'target' or 'key') then
    rest_apply(record)
  elseif evidence == 'success' then
    rest_succeed(record)
  end
  breaker_step(record, (n == 3 and evidence == 'failure') and 'neutral' or evidence)
  health_write(KEYS[n], record, before)
  tell_bar(KEYS[n], record, code_before, ends_before, breaker_before)
end
