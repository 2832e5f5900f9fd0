#!lua
-- @name cache/look
-- @since 0.1.0
-- @summary Finds a stored answer; where there is none, lets one caller lead and the others follow.
-- @keys 1 lead hash argument who fetches it, see `lib/cache_lead.lua`
-- @keys 2 entry string argument format, stored at (ms), ends at (ms) and the sealed answer
-- @args 1 format text which entries the caller can read
-- @args 2 owner text the worker that asks
-- @args 3 lease ms how long a lead lasts that nobody follows; at most ten minutes
-- @args 4 roll count 0 to 999, drawn: whether an entry that ends soon is fetched anew
-- @args last now_ms ms 0 for the server's clock
-- @returns {1, 'found', entry, age_ms, token} token above 0: the caller shall also fetch it anew
-- @returns {1, 'lead', token} there is none, and the caller shall fetch it
-- @returns {1, 'follow', token} another worker does
-- @returns {0, 'alien'} one does whose feed the caller cannot read
-- @errors GW_BADARG GW_UNREADABLE
-- @idempotent no: a repeated call follows the lead that the first one took
-- @complexity O(size of the entry)
-- @slot {digest}
-- A lead that nobody follows has a long lease and is not renewed; its first follower cuts that to 0.8 s
-- and wakes the owner, which renews from then on. So a dead leader costs whoever comes one second.
--@include lib/args.lua
--@include lib/cache_codes.lua
--@include lib/clock.lua

local LEASE_MAX_MS = 600000
local EARS_MAX = 8192 -- bytes; workers beyond look by themselves
local EARLY = 10 -- in the last tenth of its life an entry may be fetched anew
local ROLLS = 1000
--@include lib/cache_lead.lua

local format, owner, lease, roll = ARGV[1], ARGV[2], whole(3, 1), whole(4, 0)
if #KEYS ~= 2 or #ARGV ~= 5 or format == '' or owner == '' or lease > LEASE_MAX_MS then
  bad('two keys and five arguments; a lease is at most ten minutes')
end
local now = clock_ms(whole(5, 0))

local value, age = call('GET', KEYS[2]), nil
local lead = call('HMGET', KEYS[1], 'owner', 'token', 'until', 'format', 'ears')
local last, left = stored(lead[2], 1), stored(lead[3], 1) - now
local is_held = left > 0 and left <= LEASE_MAX_MS -- a longer one is from before the clock stepped back

if value then
  local form, at, ends = string.match(value, '^(%S+) (%d+) (%d+)\n')
  if not form then
    unreadable(2)
  end
  if form == format and ends - now > 0 then
    age = math.max(0, now - at)
    local life = ends - at
    local is_due = roll * life < ROLLS * (life - EARLY * (ends - now))
    if is_held or not is_due then
      return { 1, FOUND, value, age, 0 }
    end
  end
end

if is_held and not age then
  if lead[4] ~= format then
    return { 0, ALIEN }
  end
  local ears = lead[5] or ''
  if not string.find(' ' .. ears .. ' ', ' ' .. owner .. ' ', 1, true) and #ears < EARS_MAX then
    call('HSET', KEYS[1], 'ears', ears == '' and owner or ears .. ' ' .. owner)
    wake(lead[1], 'follow')
  end
  if left > DEAD_MS then
    call('HSET', KEYS[1], 'until', string.format('%d', now + DEAD_MS))
  end
  return { 1, FOLLOW, last }
end

local token = math.max(last + 1, now)
call('HSET', KEYS[1], 'owner', owner, 'token', string.format('%d', token), 'until',
  string.format('%d', now + lease), 'format', format, 'ears', '', 'why', '')
call('PEXPIRE', KEYS[1], lease + KEEP_MS)
if age then
  return { 1, FOUND, value, age, token }
end
return { 1, LEADS, token }
