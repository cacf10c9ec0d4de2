-- Decides up to 32 requests in their order, each over up to 16 limits. It plans every limit of a request first, then
-- charges all of them or none: a request that is denied, peeks or is malformed changes no count. A later request of the
-- call sees what an earlier one charged. Each key is read once, and written at most once after everything is decided.
--
-- The algorithms and their sources are in lua/algorithms. Names in capitals are numbers of
-- packages/core/src/limits/script-protocol.ts, which the assembler puts in their place.
--
--   KEYS[1…]  each one of these, with the subject's hash tag; at most 32 × 35:
--               the state of one limit for one subject
--               the block of one limit for one subject
--               the marker of an idempotency key
--               the marker of a reservation
--               the tally of a subject's markers
--
--   ARGV[1]   time: microseconds since the epoch, or empty for the server's clock
--   ARGV[2]   definitions: JSON, the limits that the requests name: [{algorithm, mode, block_ms, size, …}, …]
--               algorithm   name of a file in lua/algorithms
--               mode        DENY: denies, and sets a block of block_ms if that is above 0. block_ms may be a list of up
--                                 to 8, ascending: of the first block, the second in a row and so on
--                           PASS: lets a request pass uncounted that does not fit; has no block
--                           DELAY: denies, and has blocks of at most block_ms that only pause.lua sets
--                           CHARGE: lets a request pass, and charges also what does not fit; has no block
--               size        units
--               …           the algorithm's own `arguments`
--   ARGV[3] requests: JSON, [{operation, cost, …}, …]. Positions count from 1: `limit` in ARGV[2], `text` in ARGV,
--                 every other in KEYS
--               {CHARGE, cost, limit, key[, block], …}
--               {PEEK, cost, limit, key[, block], …}             as CHARGE, and charges nothing
--               {REFUND, cost, at_us, limit, key, …}             refunds what was charged then; at_us 0 is whenever
--               {CHARGE_ONCE, cost, tally, tally_max, id, once, limit, key[, block], …}
--               {RESERVE, cost, tally, tally_max, ttl_ms, reservation, text, [limit, key[, block], …]}
--               {RESERVE_ONCE, cost, tally, tally_max, id, once, ttl_ms, reservation, text, [limit, key[, block], …]}
--               {VOID, cost, at_us, reservation, limit, key, …}  as REFUND, and the reservation can no longer be
--                                                                settled; at_us 0: once, by what an open one says
--               {RENEW, cost, at_us, limit, key, …}              as REFUND, and charges it now, fitting or not; with
--                                                                at_us 0 only that, as refused
--             cost          units, or a list with the cost of each limit, where -1 asks whether a unit would be
--                           allowed, and charges nothing
--             block         the key of the limit's block, present if the limit has a block_ms
--             tally         the key that counts the subject's markers, or 0 for none; at most tally_max are allowed
--             once          the marker of the idempotency key: the request is charged only if the marker is not there
--             id            names this attempt, for a later one under the same key; behind it may be `~` and 12
--                           characters of what it asks
--             reservation   the marker that keeps what was charged and the text for ttl_ms, for settle.lua
--
-- Reply: a string of big-endian doubles, which costs either side a fraction of what as many integers do. If ids are
-- part of the reply, it is a list of that string and the ids in their order.
--   now_us      the time used
--   rebased     how many limits started from scratch although their span had not ended (a clock set back, a shortened
--               limit)
--   then for each request:
--     status    ALLOWED, DENIED, COST_EXCEEDS_CAPACITY, BLOCKED, REPLAYED or TOO_MANY_MARKERS. A refund or renewal has
--               ALLOWED if anything changed, else DENIED. If this request alone failed: SHAPE, COST, LIMIT, KEY,
--               PLANNING or DEFINITION
--   and, unless it is a refund, a renewal or failed:
--     mask      the limits without enough capacity, whether they denied or let it pass; bit 0 is the first limit. For
--               BLOCKED the limits with a block; for REPLAYED 1 if that asked something else, and ids has the id of the
--               attempt that was charged
--     wait_ms   after which the request would be allowed, for TOO_MANY_MARKERS as far as its markers go; 0 if it was
--               allowed or never will be
--     for each limit: used, remaining (units), reset_ms (until all units are free)
--
-- Errors: a malformed call is refused whole with DECIDEARGS. Any other error comes from a read or from the first write:
-- nothing was written.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/state-codecs.lua
-- @include ../lib/load.lua
-- @include ../lib/validate.lua

local requests_max, limits_per_request_max = 32, 16
local keys_max = requests_max * (2 * limits_per_request_max + 3)
local first_limit_at = validate.first_limit_at

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
if not definitions or not requests then
  return refuse_call('wanted time, limits, requests, and the texts of reservations')
elseif #requests < 1 or #requests > requests_max then
  return refuse_call('wanted 1 to ' .. requests_max .. ' requests, got ' .. #requests)
elseif #definitions > requests_max * limits_per_request_max or #KEYS > keys_max then
  return refuse_call('more limits or keys than requests can have')
end

local block_lengths_max = 8

-- Whether a list has the lengths of blocks, each longer than the one before.
local function are_lengths(list)
  for at = 1, #list do
    if not integers.is_count(list[at]) or list[at] <= (list[at - 1] or 0) then
      return false
    end
  end
  return #list > 0 and #list <= block_lengths_max
end

-- Returns the limit that a definition describes; false if the definition is wrong, so that only its requests fail.
local function read_limit(definition)
  local name = type(definition) == 'table' and definition[1]
  local algorithm = state_codecs.algorithm(name)
  local mode, block_ms = algorithm and definition[2], algorithm and definition[3]
  local lengths = mode == modes.DENY and type(block_ms) == 'table' and are_lengths(block_ms) and block_ms or nil
  block_ms = lengths and lengths[#lengths] or block_ms
  local known = integers.is_count(block_ms) and (mode == modes.DENY or (mode == modes.PASS or mode == modes.CHARGE) and block_ms == 0 or mode == modes.DELAY and block_ms > 0)
  local arguments = known and algorithm.arguments(definition, now_ms)
  if not arguments then
    return false
  end
  local passes, charges, blocks = mode == modes.PASS or mode == modes.CHARGE, mode == modes.CHARGE, mode == modes.DENY
  return { algorithm = algorithm, arguments = arguments, passes = passes, charges = charges, block_ms = block_ms, blocks = blocks, lengths = lengths }
end

local limits = {}
for position, definition in ipairs(definitions) do
  limits[position] = read_limit(definition)
end

local keys = KEYS
local wrong, limit_counts = validate.requests(requests, limits, keys, limits_per_request_max)
local codec_at = validate.codec_at

-- By position: the stored state, until a request changes it; then the next state, and in `changes` its expiry, or true
-- to keep the expiry that the key has. Keys that only malformed requests name have no codec.
local changes = {}
local states, is_unreadable =
  load.states(keys, codec_at, validate.limits_of, validate.cost_maxes, validate.all_whole, now_us)

-- Returns the state of a key as this algorithm sees it, or nil. A limit may have been edited between two requests of
-- the call.
local function state_of(position, algorithm)
  if is_unreadable[position] then
    error('the key cannot be read')
  elseif changes[position] or not algorithm.whole then
    return codec_at[position] == algorithm and states[position] or nil
  end
  return algorithm.load(states[position])
end

local function change(position, codec, state, expires_ms)
  codec_at[position], states[position], changes[position] = codec, state, expires_ms or changes[position] or true
end

local reply, ids, rebased_count = { now_us, 0 }, {}, 0
-- The next states of the current request's limits, by their number; the next request overwrites them.
local next_states, next_expiries, rebases = {}, {}, {}

-- Writes the status of the request and its limits, as a charge would leave them, into the reply from `base` on. Changes
-- no state. Returns whether the request may be charged, and the longest block of an exceeded limit, or 0 for none.
local function plan(request, base)
  local cost, length, at, at_limit, bit = request[2], #request, first_limit_at[request[1]], 0, 1
  local costs = type(cost) == 'table' and cost
  local denied_mask, passed_mask, uncounted_mask, blocked_mask, wait_ms, never, block_ms = 0, 0, 0, 0, 0, false, 0
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
      passed_mask = passed_mask + bit
      next_state = nil
      if limit.charges and cost >= 0 and request[1] ~= operations.PEEK then
        local state = state_of(position, algorithm)
        next_state, expires_ms = algorithm.raise(state, limit.arguments, cost, algorithm.refused_us or now_us, now_us)
        wait, used, remaining, reset_ms = algorithm.plan(next_state or state, limit.arguments, 0, now_us, now_ms)
      else
        uncounted_mask = uncounted_mask + bit
      end
    elseif wait ~= 0 then
      denied_mask = denied_mask + bit
      never = never or wait < 0
      wait_ms = wait > wait_ms and wait or wait_ms
      if limit.blocks and limit.block_ms > 0 then
        local next_ms = state_codecs.block.next(state_of(request[at], state_codecs.block), limit.lengths, limit.block_ms, now_ms)
        block_ms = next_ms > block_ms and next_ms or block_ms
      end
    end
    if limit.block_ms > 0 then
      local left_ms = state_codecs.block.left_ms(state_of(request[at], state_codecs.block), limit.block_ms, now_ms)
      if left_ms > 0 then
        blocked_mask = blocked_mask + bit
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
    reply[base], reply[base + 1], reply[base + 2] = statuses.COST_EXCEEDS_CAPACITY, denied_mask + passed_mask, 0
  elseif blocked_mask > 0 then
    reply[base], reply[base + 1], reply[base + 2] = statuses.BLOCKED, blocked_mask + passed_mask, wait_ms
  elseif denied_mask > 0 then
    local exceeds = request[1] ~= operations.PEEK and block_ms or 0
    reply[base], reply[base + 1] = statuses.DENIED, denied_mask + passed_mask
    reply[base + 2] = exceeds > wait_ms and exceeds or wait_ms
    return false, exceeds
  else
    reply[base], reply[base + 1], reply[base + 2] = statuses.ALLOWED, passed_mask, 0
    return request[1] ~= operations.PEEK, 0, uncounted_mask
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

-- Sets the block of each limit that denied the request and has one.
local function set_blocks(request, denied_mask)
  local length, at, mask = #request, first_limit_at[request[1]], denied_mask
  while at < length do
    local limit = limits[request[at]]
    at = at + 2
    if limit.block_ms > 0 then
      if mask % 2 == 1 and limit.blocks then
        local codec = state_codecs.block
        local _, state, expires_ms = codec.next(state_of(request[at], codec), limit.lengths, limit.block_ms, now_ms)
        change(request[at], codec, state, expires_ms)
      end
      at = at + 1
    end
    mask = math.floor(mask / 2)
  end
end

-- Writes the limits as they stand, for a request that was not charged. A blocked limit has nothing left until its block
-- ends.
local function write_limits(request, base)
  local length, at, at_reply = #request, first_limit_at[request[1]], base + 3
  while at < length do
    local limit, position = limits[request[at]], request[at + 1]
    local _, used, remaining, reset_ms =
      limit.algorithm.plan(state_of(position, limit.algorithm), limit.arguments, 0, now_us, now_ms)
    at = at + 2
    if limit.block_ms > 0 then
      local left_ms = state_codecs.block.left_ms(state_of(request[at], state_codecs.block), limit.block_ms, now_ms)
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
  local is_once = operation == operations.CHARGE_ONCE or operation == operations.RESERVE_ONCE
  local idempotency, marker = is_once and state_codecs.idempotency, request[6]
  local first = idempotency and idempotency.read(state_of(marker, idempotency), now_ms)
  if first then
    local after = write_limits(request, base)
    idempotency.replay(first, request[5], reply, base, after)
    ids[#ids + 1] = first.id
    return after
  end
  local may_charge, block_ms, uncounted_mask = plan(request, base)
  if not may_charge then
    if block_ms > 0 then
      set_blocks(request, reply[base + 1])
    end
    return write_limits(request, base)
  end
  local tally = operation > operations.REFUND and request[3] ~= 0 and state_codecs.tally
  local tally_state, tally_expires_ms
  if tally then
    local wait_ms, once_ms = 0, idempotency and idempotency.ttl_ms
    local reserved_ms = operation >= operations.RESERVE and request[first_limit_at[operation] - 3]
    wait_ms, tally_state, tally_expires_ms =
      tally.plan(state_of(request[3], tally), once_ms, reserved_ms, request[4], now_ms)
    if not tally_state then
      reply[base], reply[base + 1], reply[base + 2] = statuses.TOO_MANY_MARKERS, 0, wait_ms
      return write_limits(request, base)
    end
  end
  -- Nothing may fail from the first change on: a request is charged on all of its limits or on none.
  local answer = idempotency and idempotency.state(request[5], reply, base, now_ms)
  charge(request)
  if tally then
    change(request[3], tally, tally_state, tally_expires_ms)
  end
  if idempotency then
    change(marker, idempotency, answer, now_ms + idempotency.ttl_ms + clock.step_back_ms_max)
  end
  if operation >= operations.RESERVE then
    local reservation, after = state_codecs.reservation, first_limit_at[operation]
    change(request[after - 2], reservation, reservation.state(request, after, now_us, uncounted_mask))
  end
  return base + 3 + limit_count * 3
end

local function refund(request, base)
  local operation, cost, charged_us, changed, places = request[1], request[2], request[3], 0, {}
  local costs, first, is_renewal = type(cost) == 'table' and cost, first_limit_at[operation], operation == operations.RENEW
  local reserved = operation == operations.VOID and state_of(request[4], state_codecs.reservation)
  local mask = is_renewal and charged_us == 0 and 2 ^ limits_per_request_max - 1 or 0
  if operation == operations.VOID and charged_us == 0 then
    charged_us, mask = state_codecs.reservation.charge(reserved)
  end
  for at = first, charged_us and #request or 0, 2 do
    local limit, position = limits[request[at]], request[at + 1]
    if costs then
      cost = costs[(at - first) / 2 + 1]
    end
    local state = state_of(position, limit.algorithm)
    local at_us = charged_us == 0 and not limit.algorithm.gives_back_latest and now_us or charged_us
    local next_state, expires_ms
    if mask % 2 == 0 then
      next_state, expires_ms = limit.algorithm.refund(state, limit.arguments, cost, at_us, now_us)
    end
    mask = math.floor(mask / 2)
    if is_renewal then
      local raised_us = charged_us == 0 and limit.algorithm.refused_us or now_us
      next_state, expires_ms = limit.algorithm.raise(next_state or state, limit.arguments, cost, raised_us, now_us)
    end
    if next_state then
      changed = changed + 1
      next_states[changed], next_expiries[changed], places[changed] = next_state, expires_ms, at
    end
  end
  for number = 1, changed do
    local at = places[number]
    change(request[at + 1], limits[request[at]].algorithm, next_states[number], next_expiries[number])
  end
  if reserved and charged_us then
    change(request[4], state_codecs.reservation, state_codecs.reservation.void(reserved), now_ms)
  end
  reply[base] = changed > 0 and statuses.ALLOWED or statuses.DENIED
  return base + 1
end

local base = 3
for number = 1, #requests do
  local request, problem = requests[number], wrong[number]
  local decided, after = false, nil
  if not problem then
    local is_refund = request[1] == operations.REFUND or request[1] >= operations.VOID
    decided, after = pcall(is_refund and refund or decide, request, base, limit_counts[number])
  end
  if decided then
    base = after
  else
    -- By position: planning may have written behind a hole, where the length of a table is undefined.
    for at = base + 2 + 3 * (limit_counts[number] or 0), base, -1 do
      reply[at] = nil
    end
    reply[base] = problem or malformed.PLANNING
    base = base + 1
  end
end

reply[2] = rebased_count
for position = 1, #keys do
  local expires_ms = changes[position]
  if expires_ms then
    codec_at[position].save(keys[position], states[position], expires_ms ~= true and expires_ms, server_ahead_ms)
  end
end
local packed = struct.pack('>' .. string.rep('d', #reply), unpack(reply))
return #ids == 0 and packed or { packed, unpack(ids) }
