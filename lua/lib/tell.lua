-- Tells all workers at once of a change, on the one channel they listen to; only in branches that are
-- seldom taken. It may get lost, and whoever may not publish must not end a script halfway: so its
-- outcome does not matter. `store/events.py` reads the texts: words, the first of them the kind.
local function tell(text)
  redis.pcall('PUBLISH', string.match(KEYS[1], '^[^:]+') .. ':events', text)
end
