-- The health of a target, or of a key over all its models: a hash. Times are ms; 0 or no field: never.
--   rest_until, rest_source, rest_reason   when its rest ends, and where that comes from
--   rest_set_at   when the incident behind the rest began; outlives the rest
--   hits          when its ladder was climbed, oldest first, at most three
--   limited_at    the last rate limit of a target without a limit of the day
--   streak, streak_at   ends in a row that were forgiven, and when the last one was
--   breaker, fails, opened_at, until, gen   its state; open: until when nothing passes
--   trial, trial_until   the lease that tries it, and when that ends by itself
-- `core/limits/rest.py` and `core/limits/breaker.py` are the rules, in the same words.
local REST_MAX_MS = 93600000 -- 26 h: a later end was written by a clock that has been set back

-- The generation after `gen`: microseconds, so that it also grows where a record was forgotten.
local function gen_after(gen)
  return math.max(gen + 1, now * 1000)
end
