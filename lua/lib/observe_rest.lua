-- A rest until the provider has something left again; inside admission/observe.lua. No longer one is cut.
--@include lib/tell.lua
local ends = stored(call('HGET', KEYS[2], 'rest_until'), 2)
if ends < now + rest or ends > now + DAY_MAX_MS then
  call('HSET', KEYS[2], 'rest_until', format('%d', now + rest), 'rest_source', 'authoritative', 'rest_reason',
    'rate_limit', 'rest_set_at', format('%d', now))
  call('PEXPIRE', KEYS[2], HEALTH_KEEP_MS)
  tell(format('health %s %s %d %d', KEYS[2], COOLDOWN, rest, now))
end
