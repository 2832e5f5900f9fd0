-- Counting a settlement; inside admission/settle and admission/settle_many, with lib/usage.lua.

-- Adds one settlement to its row of KEYS[at]; nothing is written. Gives the fault that it met, nil for none.
local function usage_add(rows, at, whose, told, actual, requests)
  local key = KEYS[at]
  local output, cached, reasoning, cost, family = tonumber(told), 0, 0, '-', '-'
  if not output then
    output, cached, reasoning, cost, family = match(told, USAGE_TOLD)
    output = tonumber(output)
  end
  if not output or output % 1 ~= 0 or output < 0 or output > actual then
    return 'GW_BADARG what was used'
  end
  local row = rows[whose] or usage_row(rows, key, whose)
  if not row then
    return 'GW_UNREADABLE key ' .. at
  end
  row[1], row[2], row[3] = row[1] + requests, row[2] + actual - output, row[3] + output
  row[4], row[5] = row[4] + cached, row[5] + reasoning
  if cost ~= '-' then
    row[6] = row[6] + cost
  elseif actual > 0 then
    row[7] = row[7] + requests
  end
  if family ~= '-' then
    row.errors = row.errors or {}
    local name = row.whose .. ' ' .. family
    local count = row.errors[name] or call('HGET', key, name) or 0
    if not match(count, '^%d+$') then
      return 'GW_UNREADABLE key ' .. at
    end
    row.errors[name] = count + 1
  end
end
