-- Raises the counts of calendar quotas to floors that are known to have been used. It lowers a count only if that is
-- just what an earlier run raised it to, and is safe to repeat.
--
--   KEYS[1…]  the state of one fixed_window limit for one subject, at most 100 of them, in one slot on a Cluster
--   ARGV[1]   time: microseconds since the epoch, or empty for the server's clock
--   ARGV[2]   floors: JSON, for each key {end_ms, floor, before, seen}: the end of the period in which the units were
--             used, and how many. before: the floor of an earlier run, 0 for none; a count that is just that follows a
--             floor that is lower by now. seen: what the count has to be to be changed at all, -1 for anything. A
--             floor of 0 without an earlier one only reads
--
-- Reply: four integers for each key:
--   outcome   RAISED; LOWERED; LEFT; OTHER_PERIOD or PERIOD_OVER, left for that reason
--   before    units that the key held before, in the period that it counts; 0 for none
--   end_ms    the end of that period; 0 for none
--   now       units that the key holds now
--
-- Errors: a malformed call is refused whole with FLOORARGS.
-- Names in capitals are numbers of packages/core/src/limits/script-protocol.ts.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/save.lua
-- @include ../algorithms/fixed-window.lua

local keys_max = 100

local function refuse_call(why)
  return redis.error_reply('FLOORARGS ' .. why)
end

local now_us, server_ahead_ms = clock.read(ARGV[1])
local decoded, floors = pcall(cjson.decode, ARGV[2])
if not now_us or not decoded or type(floors) ~= 'table' or #floors ~= #KEYS or #KEYS < 1 or #KEYS > keys_max then
  return refuse_call('wanted a time, and for each of 1 to ' .. keys_max .. ' keys an end and a floor')
end
for _, wanted in ipairs(floors) do
  local is_table = type(wanted) == 'table'
  local is_known = is_table and (wanted[4] == -1 or integers.is_count(wanted[4]))
  if not (is_known and integers.is_count(wanted[1]) and integers.is_count(wanted[2]) and integers.is_count(wanted[3])) then
    return refuse_call('an end or a floor is no count')
  end
end
local now_ms = math.floor(now_us / 1000)

-- Returns the end and the units of a period that is still being counted, or 0, 0. `layout` and `tag` are those of
-- fixed-window.lua.
local function counted(key)
  local state = fixed_window.load(redis.call('GET', key))
  if not state then
    return 0, 0, ''
  end
  local _, end_ms, used = struct.unpack(layout, state)
  if end_ms <= now_ms then
    return 0, 0, ''
  end
  return end_ms, used, string.sub(state, 18)
end

local reply = {}
for at, key in ipairs(KEYS) do
  local end_ms, floor = floors[at][1], floors[at][2]
  local stored_end_ms, used, held = counted(key)
  local outcome, units = floor_outcomes.LEFT, used
  if end_ms <= now_ms then
    outcome = floor_outcomes.PERIOD_OVER
  elseif stored_end_ms > 0 and stored_end_ms ~= end_ms then
    outcome = floor_outcomes.OTHER_PERIOD
  elseif (floors[at][4] == -1 or floors[at][4] == used) and (floor > used or used > floor and used == floors[at][3]) then
    outcome, units = floor > used and floor_outcomes.RAISED or floor_outcomes.LOWERED, floor
    save.value(key, struct.pack(layout, tag, end_ms, floor) .. held, end_ms + clock.step_back_ms_max, server_ahead_ms)
  end
  local base = at * 4 - 3
  reply[base], reply[base + 1], reply[base + 2], reply[base + 3] = outcome, used, stored_end_ms, units
end
return reply
