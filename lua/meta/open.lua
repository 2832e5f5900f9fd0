#!lua
-- @name meta/open
-- @since 0.1.0
-- @summary Lets a worker in when it understands the stored schema, and raises the schema it writes.
-- @keys 1 meta hash none schema (newest that writes) and min_reader (oldest that may read)
-- @args 1 schema count the schema this worker writes
-- @args 2 min_reader count the oldest schema whose readers understand what this worker writes
-- @returns {1, 'ok', schema, min_reader} stored; {2, 'ok', schema, min_reader} nothing to change
-- @returns {0, 'too_old', schema, min_reader} this worker must not start
-- @errors GW_BADARG
-- @idempotent by value
-- @complexity O(1)
-- @slot {meta}
-- The only key without a TTL: forgetting it would let an old worker in.
--@include lib/args.lua

local schema, min_reader = whole(1, 1), whole(2, 1)
if #KEYS ~= 1 or #ARGV ~= 2 or min_reader > schema then
  bad('one key; min_reader may not exceed schema')
end
local values = call('HMGET', KEYS[1], 'schema', 'min_reader')
local stored, stored_min = tonumber(values[1] or 0), tonumber(values[2] or 0)
if stored_min > schema then
  return { 0, TOO_OLD, stored, stored_min }
end
if stored >= schema and stored_min >= min_reader then
  return { 2, OK, stored, stored_min }
end
local new, new_min = math.max(stored, schema), math.max(stored_min, min_reader)
call('HSET', KEYS[1], 'schema', new, 'min_reader', new_min)
return { 1, OK, new, new_min }
