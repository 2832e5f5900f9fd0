-- Counts an admission in the caps of its key; inside admission/reserve.
call('HSET', KEYS[#KEYS], 'now', caps_now, field, caps_lease)
if caps_is_new then
  call('PEXPIRE', KEYS[#KEYS], CLIENT_KEEP_MS)
end
