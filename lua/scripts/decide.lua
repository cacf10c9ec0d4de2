-- Decides up to 32 requests in their order, each over up to 16 limits: plans every limit of a request, then charges all or
-- none. A request that is refused, only looks, or is malformed changes no count; a later request of the call sees what an
-- earlier one charged. Each key is read once and written at most once, after everything is decided.
--
-- KEYS[k]   the state of one limit for one subject, the block of one, the marker of an idempotency key or of a decision that
--           is to be settled, or how many markers there are, each with the subject's hash tag. At most 32 × 35.
-- ARGV[1]   the time in microseconds since the epoch; empty for the server's clock
-- ARGV[2]   JSON: the limits that the requests name, each {algorithm, mode, block_ms, size, …}, size in units, then the algorithm's
--           own `arguments`. mode: 0 refuses, and shuts out for block_ms if that is above 0; 1 lets pass what does not fit, uncounted,
--           and has no block; 2 refuses, and has blocks of at most block_ms that only pause.lua sets
-- ARGV[3]   JSON: the requests. limit, key and block are positions, from 1, in ARGV[2] and KEYS; a limit is followed by its
--           key, and by its block's key if it has a block_ms; cost is in units, or without a marker a list with that of each
--           limit, where -1 asks whether there is room for a unit and takes nothing:
--             {0, cost, limit, key[, block], …}              charge
--             {1, cost, limit, key[, block], …}              look, without charging
--             {2, cost, at_us, limit, key, …}                give back what was charged at that time (a reply's first number)
--             {3, cost, tally, most, id, marker, limit, key[, block], …}  charge, but only once for this marker; id names this
--                                                            attempt. tally counts markers, of which there may be so many; 0 for none
--             {4, cost, tally, most, kept_ms, settling, text, [limit, key[, block], …]}  charge, and keep that and the text for so long
--             {5, cost, tally, most, id, marker, kept_ms, settling, text, [limit, key[, block], …]}  3 and 4
--             {6, cost, at_us, settling, limit, key, …}      2, and drop the marker: there is nothing to settle any more
--
-- Reply: a string of big-endian doubles, which costs either side a fraction of what as many integers do; if ids are part of it,
-- a list of that string and those ids in their order. First the time used (microseconds) and how many limits were begun anew
-- although their span had not ended (a clock set back, a shortened limit). Then for each request its verdict:
--    1 allowed, 2 refused, 3 refused for good (the cost is above a limit's capacity), 4 blocked, 5 allowed before, 6 too many markers
--   -1 malformed, -2 no such cost, -3 no such or a wrong limit, -4 no such key or one twice, -5 planning failed, -6 the key
--      stands in this call with another definition of its limit: only this request fails, and nothing more follows for it
-- and after verdicts above 0: which limits had no room, be it that they refused or let it pass (bit 0 is the first; for 4, which block; for 5 none,
-- but the id of the attempt that was charged is among the ids), the milliseconds after which it would be admitted, for 6 as far as its markers go (0 for 1, 3
-- and 5), and for each limit the units used, the units left, and the milliseconds until all are free. A refund's verdict is 1
-- if anything was given back, else 2, and nothing more follows.
--
-- A call that is no such call is refused whole with DECIDEARGS. Any other error comes from a read or from the first write:
-- nothing was written.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/keepers.lua
-- @include ../lib/reading.lua
-- @include ../lib/examining.lua

local requests_max, limits_per_request_max = 32, 16
local keys_max = requests_max * (2 * limits_per_request_max + 3)
local looking, refunding, charging_once, keeping, keeping_once, voiding = 1, 2, 3, 4, 5, 6
local first_limit_at = examining.first_limit_at

local function refuse_call(why)
  return redis.error_reply('DECIDEARGS ' .. why)
end

local now_us, server_ahead_ms = clock.read(ARGV[1])
if not now_us then
  return refuse_call('the time is neither empty nor microseconds')
end
local now_ms = math.floor(now_us / 1000)

local function decode_list(text)
  local decoded, list = pcall(cjson.decode, text)
  return decoded and type(list) == 'table' and list or nil
end

local definitions, requests = decode_list(ARGV[2]), decode_list(ARGV[3])
if not definitions or not requests or ARGV[4] then
  return refuse_call('wanted three arguments: time, limits, requests')
elseif #requests < 1 or #requests > requests_max then
  return refuse_call('wanted 1 to ' .. requests_max .. ' requests, got ' .. #requests)
elseif #definitions > requests_max * limits_per_request_max or #KEYS > keys_max then
  return refuse_call('more limits or keys than requests can have')
end

-- What a position in ARGV[2] stands for; a wrong definition stands for nothing, and its requests fail.
local function read_limit(definition)
  local name = type(definition) == 'table' and definition[1]
  local algorithm = keepers.algorithm(name)
  local mode, block_ms = algorithm and definition[2], algorithm and definition[3]
  local known = integers.is_count(block_ms) and (mode == 0 or mode == 1 and block_ms == 0 or mode == 2 and block_ms > 0)
  local arguments = known and algorithm.arguments(definition, now_ms)
  return arguments and { algorithm = algorithm, arguments = arguments, passes = mode == 1, block_ms = block_ms, shuts_out = mode == 0 } or false
end

local limits = {}
for position, definition in ipairs(definitions) do
  limits[position] = read_limit(definition)
end

local keys = KEYS
local wrong, limit_counts = examining.all(requests, limits, keys, limits_per_request_max)
local keeper_at = examining.keeper_at

-- By position, what is stored, until a request changes it: then the state that will be, with its expiry or true for the one it
-- has. Keys that only malformed requests name have no keeper.
local changes, states, is_unreadable = {}, reading.states(keys, keeper_at, examining.limits_of, examining.cost_maxes, examining.all_whole, now_us)

-- The state of a key as this algorithm sees it, or nil. A limit may have been edited between two requests of the call.
local function state_of(position, algorithm)
  if is_unreadable[position] then
    error('the key cannot be read')
  elseif changes[position] or not algorithm.whole then
    return keeper_at[position] == algorithm and states[position] or nil
  end
  return algorithm.load(states[position])
end

local function change(position, keeper, state, expires_ms)
  keeper_at[position], states[position], changes[position] = keeper, state, expires_ms or changes[position] or true
end

local reply, ids, rebased_count = { now_us, 0 }, {}, 0
-- What the limits of the request at hand would become, by their number; overwritten by the next request.
local next_states, next_expiries, rebases = {}, {}, {}

-- Writes the request's verdict and, as they are after a charge, its limits into the reply from `base` on. Changes nothing.
-- Returns whether it may be charged, and what an exceeded limit's block is: the longest, or 0 for none.
local function plan(request, base)
  local cost, length, at, at_limit, bit = request[2], #request, first_limit_at[request[1]], 0, 1
  local costs = type(cost) == 'table' and cost
  local refused_bits, passed_bits, blocked_bits, wait_ms, never, block_ms = 0, 0, 0, 0, false, 0
  while at < length do
    local limit, position = limits[request[at]], request[at + 1]
    local algorithm = limit.algorithm
    at_limit = at_limit + 1
    if costs then
      cost = costs[at_limit]
    end
    local wait, used, remaining, reset_ms, next_state, expires_ms, rebased =
      algorithm.plan(state_of(position, algorithm), limit.arguments, cost < 0 and 1 or cost, now_us, now_ms)
    if cost < 0 and wait == 0 then
      wait, used, remaining, reset_ms, next_state =
        algorithm.plan(state_of(position, algorithm), limit.arguments, 0, now_us, now_ms)
    end
    at = at + 2
    if wait ~= 0 and limit.passes then
      passed_bits = passed_bits + bit
      next_state = nil
    elseif wait ~= 0 then
      refused_bits = refused_bits + bit
      never = never or wait < 0
      wait_ms = wait > wait_ms and wait or wait_ms
      block_ms = limit.shuts_out and limit.block_ms > block_ms and limit.block_ms or block_ms
    end
    if limit.block_ms > 0 then
      local left_ms = keepers.block.left_ms(state_of(request[at], keepers.block), limit.block_ms, now_ms)
      if left_ms > 0 then
        blocked_bits = blocked_bits + bit
        wait_ms = left_ms > wait_ms and left_ms or wait_ms
      end
      at = at + 1
    end
    next_states[at_limit], next_expiries[at_limit], rebases[at_limit] = next_state or false, expires_ms, rebased
    local at_reply = base + at_limit * 3
    reply[at_reply], reply[at_reply + 1], reply[at_reply + 2] = used, remaining, reset_ms
    bit = bit * 2
  end
  if never then
    reply[base], reply[base + 1], reply[base + 2] = 3, refused_bits + passed_bits, 0
  elseif blocked_bits > 0 then
    reply[base], reply[base + 1], reply[base + 2] = 4, blocked_bits + passed_bits, wait_ms
  elseif refused_bits > 0 then
    local exceeds = request[1] ~= looking and block_ms or 0
    reply[base], reply[base + 1] = 2, refused_bits + passed_bits
    reply[base + 2] = exceeds > wait_ms and exceeds or wait_ms
    return false, exceeds
  else
    reply[base], reply[base + 1], reply[base + 2] = 1, passed_bits, 0
    return request[1] ~= looking, 0
  end
  return false, 0
end

local function charge(request)
  local length, at, at_limit = #request, first_limit_at[request[1]], 0
  while at < length do
    local limit = limits[request[at]]
    at_limit = at_limit + 1
    local next_state = next_states[at_limit]
    if next_state then
      change(request[at + 1], limit.algorithm, next_state, next_expiries[at_limit])
      if rebases[at_limit] then
        rebased_count = rebased_count + 1
      end
    end
    at = at + (limit.block_ms > 0 and 3 or 2)
  end
end

-- Shuts out whoever exceeded: blocks each refusing limit that says so.
local function shut_out(request, refused_bits)
  local length, at, bits = #request, first_limit_at[request[1]], refused_bits
  while at < length do
    local limit = limits[request[at]]
    at = at + 2
    if limit.block_ms > 0 then
      if bits % 2 == 1 and limit.shuts_out then
        local until_ms = now_ms + limit.block_ms
        change(request[at], keepers.block, keepers.block.state(until_ms), until_ms + clock.step_back_ms_max)
      end
      at = at + 1
    end
    bits = math.floor(bits / 2)
  end
end

-- The limits as they stand, for a request that was not charged. A blocked limit has nothing left until its block ends.
local function look(request, base)
  local length, at, at_reply = #request, first_limit_at[request[1]], base + 3
  while at < length do
    local limit, position = limits[request[at]], request[at + 1]
    local _, used, remaining, reset_ms =
      limit.algorithm.plan(state_of(position, limit.algorithm), limit.arguments, 0, now_us, now_ms)
    at = at + 2
    if limit.block_ms > 0 then
      local left_ms = keepers.block.left_ms(state_of(request[at], keepers.block), limit.block_ms, now_ms)
      if left_ms > 0 then
        remaining, reset_ms = 0, left_ms > reset_ms and left_ms or reset_ms
      end
      at = at + 1
    end
    reply[at_reply], reply[at_reply + 1], reply[at_reply + 2] = used, remaining, reset_ms
    at_reply = at_reply + 3
  end
  return at_reply
end

-- Returns the base of the next request's reply.
local function decide(request, base, limit_count)
  local operation = request[1]
  local once, marker = (operation == charging_once or operation == keeping_once) and keepers.once, request[6]
  local repeated = once and once.read(state_of(marker, once), now_ms)
  if repeated then
    local after = look(request, base)
    once.repeat_reply(repeated, reply, base, after)
    ids[#ids + 1] = repeated.id
    return after
  end
  local may_charge, block_ms = plan(request, base)
  if not may_charge then
    if block_ms > 0 then
      shut_out(request, reply[base + 1])
    end
    return look(request, base)
  end
  local tally = operation > refunding and request[3] ~= 0 and keepers.tally
  local tally_state, tally_expires_ms
  if tally then
    local wait_ms, kept_ms = 0, operation >= keeping and request[first_limit_at[operation] - 3]
    wait_ms, tally_state, tally_expires_ms = tally.plan(state_of(request[3], tally), once and once.kept_ms, kept_ms, request[4], now_ms)
    if not tally_state then
      reply[base], reply[base + 1], reply[base + 2] = 6, 0, wait_ms
      return look(request, base)
    end
  end
  -- Nothing may fail from the first change on: a request is charged whole or not at all.
  local answer = once and once.state(request[5], reply, base, now_ms)
  charge(request)
  if tally then
    change(request[3], tally, tally_state, tally_expires_ms)
  end
  if once then
    change(marker, once, answer, now_ms + once.kept_ms + clock.step_back_ms_max)
  end
  if operation > charging_once then
    local settling, after = keepers.settling, first_limit_at[operation]
    change(request[after - 2], settling, settling.state(request, after, now_us, reply[base + 1]))
  end
  return base + 3 + limit_count * 3
end

local function refund(request, base)
  local changed, length, places, cost = 0, #request, {}, request[2]
  local costs, first = type(cost) == 'table' and cost, first_limit_at[request[1]]
  for at = first, length, 2 do
    local limit, position = limits[request[at]], request[at + 1]
    if costs then
      cost = costs[(at - first) / 2 + 1]
    end
    local next_state, expires_ms =
      limit.algorithm.refund(state_of(position, limit.algorithm), limit.arguments, cost, request[3], now_us)
    if next_state then
      changed = changed + 1
      next_states[changed], next_expiries[changed], places[changed] = next_state, expires_ms, at
    end
  end
  for number = 1, changed do
    local at = places[number]
    change(request[at + 1], limits[request[at]].algorithm, next_states[number], next_expiries[number])
  end
  local kept = request[1] == voiding and state_of(request[4], keepers.settling)
  if kept then
    change(request[4], keepers.settling, keepers.settling.void(kept), now_ms)
  end
  reply[base] = changed > 0 and 1 or 2
  return base + 1
end

local base = 3
for number = 1, #requests do
  local request, problem = requests[number], wrong[number]
  local decided, after = false, nil
  if not problem then
    decided, after = pcall((request[1] == refunding or request[1] == voiding) and refund or decide, request, base, limit_counts[number])
  end
  if decided then
    base = after
  else
    for at = #reply, base, -1 do
      reply[at] = nil
    end
    reply[base] = problem or -5
    base = base + 1
  end
end

reply[2] = rebased_count
for position = 1, #keys do
  local expires_ms = changes[position]
  if expires_ms then
    keeper_at[position].save(keys[position], states[position], expires_ms ~= true and expires_ms, server_ahead_ms)
  end
end
local packed = struct.pack('>' .. string.rep('d', #reply), unpack(reply))
return #ids == 0 and packed or { packed, unpack(ids) }
