-- Decides up to 32 requests in their order, each over up to 16 limits: plans every limit of a request, then charges all or
-- none. A request that is refused, only looks, or is malformed changes nothing; a later request of the call sees what an
-- earlier one charged. Each key is read once and written at most once, after everything is decided.
--
-- KEYS[k]   the state of one limit for one subject, each with the subject's hash tag. At most 32 × 16.
-- ARGV[1]   the time in microseconds since the epoch; empty for the server's clock
-- ARGV[2]   JSON: the limits that the requests name, each {algorithm, mode, size, …}: mode is 0 (enforce; others are
--           reserved), size is in units, what follows is the algorithm's own, see its `arguments`
-- ARGV[3]   JSON: the requests, each {operation, cost, limit, key, limit, key, …}: operation 0 charges, 1 looks without
--           charging; cost is in units; limit and key are positions, from 1, in ARGV[2] and KEYS
--
-- Reply: flat integers. First the time used (microseconds) and how many limits were begun anew although their span had not
-- ended (a clock set back, a shortened limit). Then for each request its verdict:
--    1 allowed, 2 refused, 3 refused for good (the cost is above a limit's size), 4 reserved (blocked)
--   -1 malformed, -2 no such cost, -3 no such or a wrong limit, -4 no such key or one twice, -5 planning failed: only this
--      request fails, and nothing more follows for it
-- and after verdicts above 0: which limits refused (bit 0 is the first), the milliseconds after which it would be admitted (0 for
-- verdicts 1 and 3), and for each limit the units used, the units left, and the milliseconds to the span's end.
--
-- A call that is no such call is refused whole with DECIDEARGS. Any other error comes from the first SET: nothing was written.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../algorithms/fixed-window.lua

local algorithms = { fixed_window = fixed_window }
local requests_max, limits_per_request_max = 32, 16

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
elseif #definitions > requests_max * limits_per_request_max or #KEYS > requests_max * limits_per_request_max then
  return refuse_call('more limits or keys than requests can have')
end

-- What a position in ARGV[2] stands for; a wrong definition stands for nothing, and its requests fail.
local limits = {}
for position, definition in ipairs(definitions) do
  local algorithm = type(definition) == 'table' and definition[2] == 0 and algorithms[definition[1]]
  local arguments = algorithm and algorithm.arguments(definition)
  limits[position] = arguments and { algorithm = algorithm, arguments = arguments } or false
end

-- The state of each key for the length of the call.
local cells, whole_keys, whole_cells = {}, {}, {}

local function cell_of(key, algorithm)
  local cell = cells[key]
  if not cell then
    cell = { key = key, algorithm = algorithm, state = false, expires_ms = false, loaded = false, changed = false, named_by = 0 }
    cells[key] = cell
    if algorithm.whole then
      whole_keys[#whole_keys + 1] = key
      whole_cells[#whole_cells + 1] = cell
    end
  end
  return cell
end

-- Puts limits and cells in the place of their positions. Returns what is wrong, or nil.
local function resolve(request, number)
  if type(request) ~= 'table' or (request[1] ~= 0 and request[1] ~= 1) then
    return -1
  elseif not integers.is_count(request[2]) then
    return -2
  end
  local length = #request
  if length < 4 or length % 2 == 1 or length > 2 + 2 * limits_per_request_max then
    return -1
  end
  for at = 3, length, 2 do
    local limit, key = limits[request[at]], KEYS[request[at + 1]]
    if not limit then
      return -3
    elseif not key then
      return -4
    end
    local cell = cell_of(key, limit.algorithm)
    if cell.named_by == number then
      return -4
    end
    cell.named_by = number
    request[at], request[at + 1] = limit, cell
  end
  return nil
end

local wrong = {}
for number = 1, #requests do
  wrong[number] = resolve(requests[number], number)
end

if #whole_keys > 0 then
  local values = redis.call('MGET', unpack(whole_keys))
  for at = 1, #whole_keys do
    whole_cells[at].state = values[at]
  end
end

-- Another algorithm's state counts as none, as it would between two calls.
local function state_of(cell, algorithm)
  if not cell.loaded then
    cell.loaded = true
    cell.state = cell.algorithm.load(cell.state, cell.key)
  end
  if cell.algorithm ~= algorithm then
    return nil
  end
  return cell.state
end

local reply, rebased_count = { now_us, 0 }, 0
local changed_cells = {}
-- What the limits of the request at hand would become; overwritten by the next request.
local next_states, expiries, rebases = {}, {}, {}

-- Writes the request's part of the reply from `base` on. Charges nothing: returns whether it may be charged.
local function plan(request, base)
  local cost, refused_bits, bit, wait_ms, never = request[2], 0, 1, 0, false
  local at_reply, at_limit = base + 3, 0
  reply[base], reply[base + 1], reply[base + 2] = 1, 0, 0
  for at = 3, #request, 2 do
    local limit = request[at]
    local algorithm, arguments = limit.algorithm, limit.arguments
    local wait, used, remaining, reset_ms, next_state, expires_ms, rebased =
      algorithm.plan(state_of(request[at + 1], algorithm), arguments, cost, now_ms)
    if wait ~= 0 then
      refused_bits = refused_bits + bit
      never = never or wait < 0
      wait_ms = wait > wait_ms and wait or wait_ms
    end
    at_limit = at_limit + 1
    next_states[at_limit], expiries[at_limit], rebases[at_limit] = next_state, expires_ms, rebased
    reply[at_reply], reply[at_reply + 1], reply[at_reply + 2] = used, remaining, reset_ms
    at_reply, bit = at_reply + 3, bit * 2
  end
  if refused_bits > 0 then
    reply[base], reply[base + 1], reply[base + 2] = never and 3 or 2, refused_bits, never and 0 or wait_ms
    return false
  end
  return request[1] == 0
end

local function charge(request)
  local at_limit = 0
  for at = 3, #request, 2 do
    at_limit = at_limit + 1
    local next_state = next_states[at_limit]
    if next_state then
      local cell = request[at + 1]
      cell.state, cell.algorithm = next_state, request[at].algorithm
      cell.expires_ms = expiries[at_limit] or cell.expires_ms
      if rebases[at_limit] then
        rebased_count = rebased_count + 1
      end
      if not cell.changed then
        cell.changed = true
        changed_cells[#changed_cells + 1] = cell
      end
    end
  end
end

-- The limits as they stand, for a request that was not charged.
local function look(request, base)
  local at_reply = base + 3
  for at = 3, #request, 2 do
    local limit = request[at]
    local _, used, remaining, reset_ms =
      limit.algorithm.plan(state_of(request[at + 1], limit.algorithm), limit.arguments, 0, now_ms)
    reply[at_reply], reply[at_reply + 1], reply[at_reply + 2] = used, remaining, reset_ms
    at_reply = at_reply + 3
  end
end

local function decide(request, base)
  if plan(request, base) then
    charge(request)
  else
    look(request, base)
  end
end

local base = 3
for number = 1, #requests do
  local request, problem = requests[number], wrong[number]
  if not problem and pcall(decide, request, base) then
    base = base + 3 + (#request - 2) / 2 * 3
  else
    for at = #reply, base, -1 do
      reply[at] = nil
    end
    reply[base] = problem or -5
    base = base + 1
  end
end

reply[2] = rebased_count
for at = 1, #changed_cells do
  local cell = changed_cells[at]
  cell.algorithm.save(cell.key, cell.state, cell.expires_ms, server_ahead_ms)
end
return reply
