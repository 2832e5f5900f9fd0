-- Reads both health records before anything is written, and whether they can be read at all; inside
-- lib/health_outcome.lua.
local FORMS = {
  rest_until = '^%d+$', rest_set_at = '^%d+$', limited_at = '^%d+$', fails = '^%d+$', opened_at = '^%d+$',
  ['until'] = '^%d+$', gen = '^%d+$', trial_until = '^%d+$', streak = '^%d+$', streak_at = '^%d+$',
  hits = '^[%d ]+$',
}
outcome.records = { false, call('HGETALL', KEYS[2]), call('HGETALL', KEYS[3]) }
for n = 2, 3 do
  local flat = outcome.records[n]
  for at = 1, #flat, 2 do
    local name, text = flat[at], flat[at + 1]
    local is_good = not FORMS[name] or match(text, FORMS[name])
    if name == 'breaker' then
      is_good = text == 'closed' or text == 'open' or text == 'half_open'
    end
    if not is_good then
      return { err = 'GW_UNREADABLE key ' .. n }
    end
  end
end
