-- Settles a decision: replaces its reservation marker and corrects the counts that it was charged to, but only if the
-- marker still is what the caller read. A repeat finds another marker and changes nothing.
-- packages/redis/src/settlement-marker.ts knows what a marker holds.
--
--   KEYS[1]   marker
--   KEYS[2…]  counts to be corrected, in the marker's slot; at most 16. Behind them may be the tally of the subject's
--             markers
--   ARGV[1]   time: microseconds since the epoch, or empty for the server's clock
--   ARGV[2]   before: the marker as it was read
--   ARGV[3]   after: the new marker
--   ARGV[4]   correction: empty to replace only the marker, which keeps its expiry; or JSON:
--               {until_ms, repeated_ms, units, at_us, limit, …}
--             until_ms      expiry of the new marker, which lives for repeated_ms at least
--             units         added to what the decision was charged at at_us; refunded if below 0. Or a list with the
--                           units of each count, or for one {back, more[, back_us, more_us[, hold_ms]]}: what is given
--                           back of what was charged at back_us, and what is charged instead at more_us, held for
--                           hold_ms; both are at_us if they are not said. Where nothing can be given back, what is more
--                           than that
--             limit         definition for KEYS[2] and on, as in decide.lua. {"tally", tally_max, ttl_ms} counts the
--                           marker again, as one that lives for ttl_ms from now on
--
-- Reply: nil if the marker is not `before`; FULL if the tally has no place; else the marker as it is now. With a
-- correction ARGV[3] is followed by big-endian doubles:
--   now_us    the time used
--   for each count: changed (1, else 0), used, remaining (units), reset_ms (until all units are free)
--
-- Errors: a malformed call is refused whole with SETTLEARGS. Any other error comes from a read or from the first write:
-- nothing was written.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/state-codecs.lua

local limits_max = 16

local function refuse_call(why)
  return redis.error_reply('SETTLEARGS ' .. why)
end

local now_us, server_ahead_ms = clock.read(ARGV[1])
if not now_us then
  return refuse_call('the time is neither empty nor microseconds')
elseif not ARGV[4] or ARGV[5] or #KEYS < 1 or #KEYS > limits_max + 2 then
  return refuse_call('wanted a marker, at most ' .. limits_max .. ' counts, and four arguments')
end
local now_ms = math.floor(now_us / 1000)

local marker = KEYS[1]
if redis.call('GET', marker) ~= ARGV[2] then
  return false
elseif ARGV[4] == '' then
  redis.call('SET', marker, ARGV[3], 'KEEPTTL')
  return ARGV[3]
end

local decoded, settlement = pcall(cjson.decode, ARGV[4])
if not decoded or type(settlement) ~= 'table' or #settlement ~= #KEYS + 3 then
  return refuse_call('wanted a limit for every count')
end
local until_ms, repeated_ms, units, at_us = settlement[1], settlement[2], settlement[3], settlement[4]
local each = type(units) == 'table' and units

-- Whether these are units that a count can be corrected by.
local function is_change(units)
  if type(units) == 'table' then
    local are_counts = #units >= 2 and #units <= 5
    for _, unit in ipairs(units) do
      are_counts = are_counts and integers.is_count(unit)
    end
    return are_counts
  end
  return type(units) == 'number' and integers.is_count(math.abs(units))
end

local are_changes = each or is_change(units)
for at = 2, each and #KEYS or 1 do
  are_changes = are_changes and is_change(each[at - 1])
end
local has_expiry = integers.is_count(until_ms) and integers.is_count(repeated_ms)
if not (has_expiry and are_changes and integers.is_count(at_us)) then
  return refuse_call('a number is no count')
end

-- Returns what is to be saved of one corrected count, and how the count stands then.
local function correct(key, definition, units)
  local back, more, back_us, more_us, hold_ms
  if type(units) == 'table' then
    back, more, back_us, more_us, hold_ms = unpack(units)
  else
    back, more = math.max(0, -units), math.max(0, units)
  end
  local name = type(definition) == 'table' and definition[1]
  if name == 'tally' then
    local tally = state_codecs.of('tally')
    local state = tally.load(redis.call('GET', key))
    local _, next_state, expires_ms = tally.plan(state, false, definition[3], definition[2], now_ms)
    return next_state and { key = key, codec = tally, state = next_state, expires_ms = expires_ms } or nil, 0, 0, 0
  end
  local algorithm = state_codecs.algorithm(name)
  local arguments = algorithm and algorithm.arguments(definition, now_ms)
  if not arguments then
    error('the definition of a limit is malformed')
  end
  local value = algorithm.whole and redis.call('GET', key)
  local state = algorithm.load(value, key, arguments, math.min(math.max(back, more), arguments.size), now_us)
  local next_state, expires_ms = algorithm.refund(state, arguments, back, back_us or at_us, now_us)
  -- A span that an edited zone has moved keeps what it was charged.
  more = next_state and more or math.max(0, more - back)
  arguments.hold_ms = hold_ms
  if at_us - now_us <= clock.step_back_ms_max * 1000 then
    -- Otherwise a clock was set back, and what it counted is void.
    local raised, raised_expires_ms = algorithm.raise(next_state or state, arguments, more, more_us or at_us, now_us)
    next_state, expires_ms = raised or next_state, raised and raised_expires_ms or expires_ms
  end
  local _, used, remaining, reset_ms = algorithm.plan(next_state or state, arguments, 0, now_us, now_ms)
  return { key = key, codec = algorithm, state = next_state, expires_ms = expires_ms }, used, remaining, reset_ms
end

local numbers, corrections = { now_us }, {}
for at = 2, #KEYS do
  local done, correction, used, remaining, reset_ms = pcall(correct, KEYS[at], settlement[at + 3], each and each[at - 1] or units)
  if not done then
    return refuse_call('count ' .. at - 1 .. ' cannot be corrected')
  elseif not correction then
    return 'FULL'
  end
  corrections[at - 1] = correction
  local base = #numbers
  numbers[base + 1], numbers[base + 2] = correction.state and 1 or 0, used
  numbers[base + 3], numbers[base + 4] = remaining, reset_ms
end

local settled = ARGV[3] .. struct.pack('>' .. string.rep('d', #numbers), unpack(numbers))
local kept_until_ms = math.max(until_ms, now_ms + repeated_ms)
redis.call('SET', marker, settled, 'PXAT', kept_until_ms + server_ahead_ms)
for _, correction in ipairs(corrections) do
  if correction.state then
    correction.codec.save(correction.key, correction.state, correction.expires_ms, server_ahead_ms)
  end
end
return settled
