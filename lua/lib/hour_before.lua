-- A lease that was counted in an hour that is over; inside admission/settle.
local hour = 'h' .. period % HOURS
local held, old_r, old_t = match(call('HGET', key, hour) or '', '^(%d+) (%d+) (%d+)$')
if held ~= period then
  old_r, old_t = 0, 0
end
local r_new, t_new = math.max(old_r + requests, 0), math.max(old_t + tokens, 0)
drs, dts = drs + r_new - old_r, dts + t_new - old_t
write, hour_writes = WRITE, hour_writes or {}
hour_writes[#hour_writes + 1] = { key, hour, format('%s %d %d', period, r_new, t_new) }
