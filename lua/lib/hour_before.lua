-- A lease that was counted in an hour that is over; inside admission/settle.
local hour = slot_name('d', HOUR_FIELDS, period)
local held = call('HGET', key, hour)
local old_r, old_t = slot_get(held, period, key)
local r_new, t_new = math.max(old_r + requests, 0), math.max(old_t + tokens, 0)
drs, dts = drs + r_new - old_r, dts + t_new - old_t
write, hour_writes = WRITE, hour_writes or {}
hour_writes[#hour_writes + 1] = { key, hour, slot_put(held, period, r_new, t_new, key) }
