-- Reads what a worker says of health; inside admission/settle.
--   <success|neutral|failure|exempt|rests> <generation> <reserved_at>, as the admission told them or 0;
--   after failure, exempt (a failure that lib/health_streak.lua may forgive) and rests: <threshold>
--   <cooldown_ms> of the breaker; after rests, which is neutral otherwise, and after a failure that
--   rests: <target|key> <source> <reason> <wait> <until> <stated> <climb> <step cap>, then requests and tokens
--   a day for each window, -1 for no limit. Times are ms; `core/limits/cooldown.py` has the words.
local evidence, generation, reserved_at, terms = match(ARGV[5], '^(%l+) (%d+) (%d+) ?(.*)$')
local threshold, cooldown_ms, rest = match(terms or '', '^(%d+) (%d+) ?(.*)$')
local subject, source, reason, wait, until_at, stated, climb, step_cap, limits =
  match(rest or '', '^(%l+) (%l+) ([%l_]+) (%d+) (%d+) (%d+) ([%l_]+) (%d+) ?([-%d ]*)$')
if not evidence or (terms ~= '' and not threshold) or ((rest or '') ~= '' and not subject)
  or not (((evidence == 'success' or evidence == 'neutral') and terms == '')
    or ((evidence == 'failure' or evidence == 'exempt') and threshold) or (evidence == 'rests' and subject)) then
  return { err = 'GW_BADARG outcome' }
end
outcome = {
  evidence = evidence == 'rests' and 'neutral' or evidence == 'exempt' and 'failure' or evidence,
  is_exempt = evidence == 'exempt', generation = generation + 0, reserved_at = reserved_at + 0,
  threshold = (threshold or 0) + 0, cooldown_ms = (cooldown_ms or 0) + 0,
  subject = subject, source = source, reason = reason, climb = climb, limits = limits,
  wait = (wait or 0) + 0, until_at = (until_at or 0) + 0, stated = (stated or 0) + 0,
  step_cap = (step_cap or 0) + 0,
}
--@include lib/health_check.lua
