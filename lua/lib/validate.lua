-- Validates the requests of a call before anything is read, and finds out which state each key holds.
local validate = {}

-- By operation: the position at which the limits of a request begin.
validate.first_limit_at = {
  [operations.CHARGE] = 3,
  [operations.PEEK] = 3,
  [operations.REFUND] = 4,
  [operations.CHARGE_ONCE] = 7,
  [operations.RESERVE] = 8,
  [operations.RESERVE_ONCE] = 10,
  [operations.VOID] = 5,
  [operations.RENEW] = 4,
}
local first_limit_at = validate.first_limit_at

-- A cost above the size is refused whatever the log holds, which then need not be read for it; or charged up to it.
local function cost_that_fits(limit, cost)
  local size = limit.arguments.size
  return cost <= size and cost or limit.charges and size or 0
end

-- By position in KEYS: the codec of its state, and the number of the last request that named it. For a key that is not
-- read whole, also its limit and the largest cost that a request asks of it.
validate.codec_at, validate.named_by, validate.limits_of, validate.cost_maxes = {}, {}, {}, {}
validate.all_whole = true

-- Notes that a request uses a key. Returns why the request is malformed, or nil.
local function name_key(keys, position, number, codec, limit, cost)
  local codec_at, named_by = validate.codec_at, validate.named_by
  local limits_of, cost_maxes = validate.limits_of, validate.cost_maxes
  if not keys[position] or named_by[position] == number then
    return malformed.KEY
  end
  named_by[position] = number
  local known = codec_at[position]
  if not known then
    codec_at[position] = codec
    if not codec.whole then
      validate.all_whole, limits_of[position], cost_maxes[position] = false, limit, cost_that_fits(limit, cost)
    end
  elseif known ~= codec then
    -- Another algorithm's state counts as none, as it would between two calls; but a block or a marker is no state,
    -- and its codec has no arguments.
    return (not known.whole or not codec.whole or not known.arguments or not codec.arguments)
        and malformed.DEFINITION
      or nil
  elseif not codec.whole then
    if limits_of[position] ~= limit then
      return malformed.DEFINITION
    end
    cost_maxes[position] = math.max(cost_maxes[position], cost_that_fits(limit, cost))
  end
  return nil
end

-- Notes the markers of a request that has any. Returns why the request is malformed, or nil.
local function name_markers(keys, request, number)
  local operation = request[1]
  if operation == operations.VOID then
    return not integers.is_count(request[3]) and malformed.SHAPE
      or name_key(keys, request[4], number, state_codecs.of('reservation'))
  end
  if not integers.is_count(request[4]) then
    return malformed.SHAPE
  end
  local problem = request[3] ~= 0 and name_key(keys, request[3], number, state_codecs.of('tally'))
  if problem then
    return problem
  end
  if operation ~= operations.RESERVE then
    local idempotency = state_codecs.of('idempotency')
    problem = not idempotency.is_id(request[5]) and malformed.SHAPE or name_key(keys, request[6], number, idempotency)
    if problem or operation == operations.CHARGE_ONCE then
      return problem
    end
  end
  local reservation, after = state_codecs.of('reservation'), first_limit_at[operation]
  return not reservation.is_valid(request, after) and malformed.SHAPE
    or name_key(keys, request[after - 2], number, reservation)
end

-- Returns why a request is malformed, or nil, and the number of its limits.
local function validate_request(request, number, limits, keys, limits_per_request_max)
  local codec_at, named_by = validate.codec_at, validate.named_by
  local first = type(request) == 'table' and first_limit_at[request[1]]
  if not first then
    return malformed.SHAPE
  end
  local operation, cost, length = request[1], request[2], #request
  local costs = type(cost) == 'table' and cost
  local is_refund = operation == operations.REFUND or operation == operations.RENEW
  if not costs and not integers.is_count(cost) then
    return malformed.COST
  elseif is_refund and (length == 3 or not integers.is_count(request[3])) then
    -- Only shadow limits, none of which was charged: there is nothing to give back.
    return not integers.is_count(request[3]) and malformed.SHAPE or nil, 0
  elseif operation > operations.REFUND and not is_refund then
    local problem = name_markers(keys, request, number)
    if problem or operation >= operations.RESERVE and length == first - 1 then
      return problem, 0
    end
  end
  local at, count = first, 0
  repeat
    local limit = limits[request[at]]
    if at >= length then
      return malformed.SHAPE
    elseif not limit then
      return malformed.LIMIT
    end
    if costs then
      cost = costs[count + 1]
      if cost ~= reserved_costs.PEEK and not integers.is_count(cost) then
        return malformed.COST
      end
      cost = math.abs(cost)
    end
    local position, algorithm = request[at + 1], limit.algorithm
    if algorithm.whole and keys[position] and not codec_at[position] then
      codec_at[position], named_by[position] = algorithm, number -- what name_key does, for what is by far the most frequent
    else
      local problem = name_key(keys, position, number, algorithm, limit, cost)
      if problem then
        return problem
      end
    end
    at = at + 2
    if limit.block_ms > 0 and not is_refund and operation ~= operations.VOID then
      local problem = name_key(keys, request[at], number, state_codecs.of('block'))
      if problem then
        return problem
      end
      at = at + 1
    end
    count = count + 1
  until at > length
  return (count > limits_per_request_max or costs and #costs ~= count) and malformed.SHAPE or nil, count
end

-- Returns, by the number of the request, why it is malformed (or nil) and how many limits it has. Afterwards `validate`
-- says how to read the keys: codec_at, limits_of, cost_maxes, and all_whole.
function validate.requests(requests, limits, keys, limits_per_request_max)
  local wrong, limit_counts = {}, {}
  for number = 1, #requests do
    wrong[number], limit_counts[number] = validate_request(requests[number], number, limits, keys, limits_per_request_max)
  end
  return wrong, limit_counts
end
