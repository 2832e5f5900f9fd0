-- Milliseconds since the epoch: the caller's when given (tests own the clock), else this server's,
-- so that replicas with different clocks still share one.
local function clock_ms(given)
  if given > 0 then
    return given
  end
  local now = call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end
