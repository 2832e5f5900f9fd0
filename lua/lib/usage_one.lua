-- Counting an answer in a row that is there, which is the rule; inside admission/settle. lib/usage.lua has the rest.
local text = call('HGET', KEYS[windows + 4], ARGV[6])
local output, cached, reasoning, cost = tonumber(told), 0, 0, nil
if not output then
  output, cached, reasoning, cost = match(told, '^(%d+) (%d+) (%d+) (%d+) %-$')
  output = tonumber(output)
end
local a, b, c, d, e, f, g = match(text or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
if a and output and output >= 0 and output <= actual and output % 1 == 0 then
  row = format('%d %d %d %d %d %d %d', a + requests + 1, b + actual - output, c + output, d + cached, e + reasoning,
    f + (cost or 0), (cost or actual == 0) and g or g + requests + 1)
else
--@include lib/usage.lua
--@include lib/usage_add.lua
  local rows = {}
  local fault = usage_add(rows, windows + 4, ARGV[6], told, actual, requests + 1)
  if fault then
    return { err = fault }
  end
  write_rows = function()
    usage_write(rows, KEYS[windows + 4])
  end
end
