-- A lease that was counted in a second that is over; inside admission/settle and client/settle. Mostly the slot
-- that was told is the right one, and its numbers are narrow: that needs no function.
name, text = slot, values[3]
local place, size, eight = bucket % 8, 0, 0
local at, old_r, old_t = 6 + 6 * place, 0, 0
if text and #text > at + 4 then
  size, eight = struct.unpack('<BI4', text)
end
local is_plain = size == 6 and eight * 8 + place - bucket == 0
if is_plain then
  old_r, old_t = struct.unpack('<I2I4', text, at)
else
  name = slot_name('s', SECOND_FIELDS, bucket)
  text = call('HGET', key, name)
  old_r, old_t = slot_get(text, bucket, key)
end
local r_new, t_new = old_r + requests, old_t + tokens
r_new, t_new = r_new > 0 and r_new or 0, t_new > 0 and t_new or 0
ts = ts + t_new - old_t
if requests ~= 0 then
  rs = rs + r_new - old_r
end
if is_plain and t_new < 4294967296 then
  text = string.sub(text, 1, at - 1) .. struct.pack('<I2I4', r_new, t_new) .. string.sub(text, at + 6)
else
  text = slot_put(text, bucket, r_new, t_new, key)
end
