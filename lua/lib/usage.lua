-- What settlements add to the use of a key on a day (UTC), which is a hash:
--   <client> <model>           '<requests> <prompt> <completion> <cached> <reasoning> <nano-USD> <unpriced>':
--                              tokens but for the first; the last: requests whose tokens have no price
--   <client> <model> <family>  calls that ended in an error of that family
-- Names are percent-encoded. When the hash is full, clients and models that are not in it count together.
-- What is told of a settlement is its output tokens; or '<output> <cached> <reasoning> <nano-USD> <family>',
-- with - for a price nobody knows, and for no error.
local USAGE_READ = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'
local USAGE_TOLD = '^(%d+) (%d+) (%d+) ([%d-]+) ([%l_-]+)$'
local USAGE_MOST, USAGE_REST, USAGE_KEEP_MS = 2000, '_other _other', 7948800000 -- fields; 92 days

-- The row of a client and a model, as it will be written; nil when that cannot be read.
local function usage_row(rows, key, whose)
  local text, is_first = call('HGET', key, whose), false
  if not text and whose ~= USAGE_REST then
    local held = call('HLEN', key)
    if held + #rows >= USAGE_MOST then
      rows[whose] = rows[USAGE_REST] or usage_row(rows, key, USAGE_REST)
      return rows[whose]
    end
    is_first = held == 0
  end
  local requests, prompt, completion, cached, reasoning, cost, unpriced = match(text or '0 0 0 0 0 0 0', USAGE_READ)
  if requests then
    local row = { requests + 0, prompt + 0, completion + 0, cached + 0, reasoning + 0, cost + 0, unpriced + 0 }
    row.whose, row.is_first = whose, is_first
    rows[whose], rows[#rows + 1] = row, row
    return row
  end
end

local function usage_write(rows, key)
  for _, row in ipairs(rows) do
    call('HSET', key, row.whose, format('%d %d %d %d %d %d %d', unpack(row)))
    for name, count in pairs(row.errors or {}) do
      call('HSET', key, name, format('%d', count))
    end
    if row.is_first then
      call('PEXPIRE', key, USAGE_KEEP_MS)
    end
  end
end
