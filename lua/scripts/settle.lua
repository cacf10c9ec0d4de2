-- Settles up to 32 decisions, each by itself: replaces its reservation marker and corrects the counts that it was
-- charged to, but only if the marker still is what the caller read. A repeat finds another marker and changes nothing.
-- packages/redis/src/settlement-marker.ts knows what a marker holds.
--
--   KEYS[1…]  of each settlement its marker, and behind it the counts to be corrected, at most 16, and perhaps the
--             tally of the subject's markers; all in one slot
--   ARGV[1]   time: microseconds since the epoch, or empty for the server's clock
--   ARGV[2]   definitions: JSON, what settlements name, each as in decide.lua: [{algorithm, …}, …]. {"tally",
--             tally_max, ttl_ms} counts a marker again, as one that lives for ttl_ms from now on
--   ARGV[3]   settlements: JSON, [{marker, before, …}, …]. Positions count from 1
--               {marker, before}     replaces it; it keeps its expiry
--               {marker, before, until_ms, repeated_ms, at_us, limit, change, …}     and corrects its counts
--             marker        in KEYS
--             before        in ARGV: the marker as it was read. Behind it is the new one
--             until_ms      expiry of the new marker, which lives for repeated_ms at least
--             limit         in ARGV[2], one for each count
--             change        units to be added to what the count was charged at at_us; refunded if below 0. Or {back,
--                           more[, back_us, more_us[, hold_ms]]}: what is given back of what was charged at back_us,
--                           and what is charged instead at more_us, held for hold_ms; both are at_us if they are not
--                           said. Where nothing can be given back, what is more than that
--
-- Reply, for each settlement: nil if the marker is not `before`; FULL if the tally has no place; an error if it is
-- malformed or cannot be read: it changed nothing. Else what was done, as big-endian doubles, none without a
-- correction:
--   now_us    the time used
--   for each count: changed (1, else 0), used, remaining (units), reset_ms (until all units are free)
--
-- Errors: a malformed call is refused whole with SETTLEARGS.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/state-codecs.lua

local settlements_max, first_limit_at = 32, 6

local now_us, server_ahead_ms = clock.read(ARGV[1])
local is_read, settlements, definitions = pcall(function()
  return cjson.decode(ARGV[3]), cjson.decode(ARGV[2])
end)
if not (now_us and is_read) or #settlements > settlements_max then
  return redis.error_reply('SETTLEARGS wanted a time, definitions, and at most ' .. settlements_max .. ' settlements')
end
local now_ms = math.floor(now_us / 1000)

-- By position: what a definition describes, as its first settlement read it.
local limits = {}

local function limit_of(position)
  local limit = limits[position]
  if not limit then
    local definition = definitions[position]
    local name = definition[1]
    local codec = name == 'tally' and state_codecs.of('tally') or state_codecs.algorithm(name)
    limit = { codec = codec, arguments = name == 'tally' and definition or codec.arguments(definition, now_ms) }
    limits[position] = limit
  end
  return limit
end

-- Returns what a change gives back and charges, and what else it says.
local function read_change(change, at_us)
  local list = type(change) == 'table' and change or { math.max(0, -change), math.max(0, change) }
  for position = 1, math.max(2, #list) do
    if not integers.is_count(list[position]) then
      error('a number is no count')
    end
  end
  return list[1], list[2], list[3] or at_us, list[4] or at_us, list[5]
end

-- Returns the next state of a corrected count with its expiry, and how the count stands then.
local function correct(algorithm, arguments, key, value, change, at_us)
  local back, more, back_us, more_us, hold_ms = read_change(change, at_us)
  local state = algorithm.load(value, key, arguments, math.min(math.max(back, more), arguments.size), now_us)
  local next_state, expires_ms = algorithm.refund(state, arguments, back, back_us, now_us)
  -- A span that an edited zone has moved keeps what it was charged.
  more = next_state and more or math.max(0, more - back)
  if more > 0 and at_us - now_us <= clock.step_back_ms_max * 1000 then
    -- Otherwise a clock was set back, and what it counted is void.
    local held_ms = arguments.hold_ms
    arguments.hold_ms = hold_ms
    local raised, raised_expires_ms = algorithm.raise(next_state or state, arguments, more, more_us, now_us)
    arguments.hold_ms = held_ms
    next_state, expires_ms = raised or next_state, raised and raised_expires_ms or expires_ms
  end
  local _, used, remaining, reset_ms = algorithm.plan(next_state or state, arguments, 0, now_us, now_ms)
  return next_state, expires_ms, used, remaining, reset_ms
end

local function settle(settlement)
  local marker, before, until_ms, repeated_ms, at_us = unpack(settlement)
  local count, after = math.max(0, (#settlement - first_limit_at + 1) / 2), ARGV[before + 1]
  -- Values that are read whole, with the marker; a log is read by its algorithm.
  local names, value_at = { KEYS[marker] }, {}
  for number = 1, count do
    if limit_of(settlement[first_limit_at + 2 * number - 2]).codec.whole then
      names[#names + 1] = KEYS[marker + number]
      value_at[number] = #names
    end
  end
  local values = redis.call('MGET', unpack(names))
  if values[1] ~= ARGV[before] then
    return false
  elseif not until_ms then
    redis.call('SET', KEYS[marker], after, 'KEEPTTL')
    return ''
  end
  local numbers, states, expiries = { now_us }, {}, {}
  for number = 1, count do
    local position, change = settlement[first_limit_at + 2 * number - 2], settlement[first_limit_at + 2 * number - 1]
    local limit, value, base = limits[position], values[value_at[number]], 4 * number - 2
    local used, remaining, reset_ms = 0, 0, 0
    if limit.codec == state_codecs.tally then
      local _, most, ttl_ms = unpack(limit.arguments)
      _, states[number], expiries[number] = limit.codec.plan(limit.codec.load(value), false, ttl_ms, most, now_ms)
      if not states[number] then
        return 'FULL'
      end
    else
      states[number], expiries[number], used, remaining, reset_ms =
        correct(limit.codec, limit.arguments, KEYS[marker + number], value, change, at_us)
    end
    numbers[base], numbers[base + 1] = states[number] and 1 or 0, used
    numbers[base + 2], numbers[base + 3] = remaining, reset_ms
  end
  local packed = struct.pack('>' .. string.rep('d', #numbers), unpack(numbers))
  local kept_until_ms = math.max(until_ms, now_ms + repeated_ms)
  redis.call('SET', KEYS[marker], after .. packed, 'PXAT', kept_until_ms + server_ahead_ms)
  for number = 1, count do
    if states[number] then
      limits[settlement[first_limit_at + 2 * number - 2]].codec.save(KEYS[marker + number], states[number], expiries[number], server_ahead_ms)
    end
  end
  return packed
end

local answers = {}
for number, settlement in ipairs(settlements) do
  local is_done, answer = pcall(settle, settlement)
  local why = not is_done and (type(answer) == 'table' and answer.err or tostring(answer))
  if why and string.find(why, 'READONLY', 1, true) then
    return redis.error_reply('READONLY a replica settles nothing') -- so that its client looks for the master
  end
  answers[number] = why and redis.error_reply('SETTLEARGS ' .. why) or answer
end
return answers
