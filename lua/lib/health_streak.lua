-- Ends that are booked only when they come in a row; inside lib/health_settle.lua. `core/limits/streak.py`
-- is the rule.
local BOOKED_FROM, STREAK_MS = 3, 3600000

-- Makes of an exempt end a failure, or nothing; whatever else was booked ends the row.
local function streak_step(record)
  if outcome.is_exempt then
    local before = math.abs(now - record.streak_at) < STREAK_MS and record.streak or 0
    record.streak, record.streak_at = math.min(before + 1, BOOKED_FROM), now
    if record.streak < BOOKED_FROM then
      outcome.evidence, outcome.subject = 'neutral', nil
    else
      is_booked = true
    end
  elseif outcome.evidence ~= 'neutral' or outcome.subject then
    record.streak, record.streak_at = 0, 0
  end
end
