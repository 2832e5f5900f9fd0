-- The text of a lease record, readable with redis-cli:
--   R est=1200 prompt=200 exp=1795000000000 worker=w1 <window>@<second>@<day>@<state> ...
-- with one place per window: the second and the day (h<hour> or d<yyyymmdd>) in whose buckets it was
-- counted, and its state: R reserved, F its slot freed because the worker was dead, X reclaimed. The
-- first letter is X when every place is.
local function lease_write(lease)
  local head, text = 'X', ''
  for _, p in ipairs(lease.places) do
    text = string.format('%s %s@%d@%s%d@%s', text, p.name, p.bucket, p.kind, p.day, p.state)
    head = p.state == 'X' and head or 'R'
  end
  return string.format('%s est=%d prompt=%d exp=%d worker=%s%s', head, lease.estimate, lease.prompt,
    lease.expiry, lease.worker, text)
end

local function lease_read(text)
  local estimate, prompt, expiry, worker, rest =
    string.match(text, '^%u est=(%d+) prompt=(%d+) exp=(%d+) worker=(%S+) (.+)$')
  local lease = { estimate = tonumber(estimate), prompt = tonumber(prompt), expiry = expiry,
    worker = worker, places = {} }
  for name, bucket, kind, day, state in string.gmatch(rest, '(%S+)@(%d+)@(%a)(%d+)@(%u)') do
    lease.places[#lease.places + 1] = { name = name, bucket = tonumber(bucket), kind = kind,
      day = tonumber(day), state = state }
  end
  return lease
end
