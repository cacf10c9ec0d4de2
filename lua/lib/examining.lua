-- Looks at the requests of a call before anything is read: whether each is one, and what it keeps under which key.
local examining = {}

local charging, looking, refunding, charging_once, keeping, keeping_once, voiding = 0, 1, 2, 3, 4, 5, 6
-- Where the limits of a request begin.
examining.first_limit_at = { [charging] = 3, [looking] = 3, [refunding] = 4, [charging_once] = 7 }
examining.first_limit_at[keeping], examining.first_limit_at[keeping_once], examining.first_limit_at[voiding] = 8, 10, 5
local first_limit_at = examining.first_limit_at

local function counts(keeper)
  return keeper ~= keepers.block and keeper ~= keepers.once and keeper ~= keepers.settling and keeper ~= keepers.tally
end

-- A cost above the size is refused whatever the log holds, which then need not be read for it.
local function cost_that_fits(limit, cost)
  return cost <= limit.arguments.size and cost or 0
end

-- By position in KEYS: what keeps its state in it, and the number of the last request that named it. Of one that is not read
-- whole, also the limit and the largest cost asked of it.
examining.keeper_at, examining.named_by, examining.limits_of, examining.cost_maxes = {}, {}, {}, {}
examining.all_whole = true

-- Notes that a request keeps something under a key. Returns what is wrong, or nil.
local function name_key(keys, position, number, keeper, limit, cost)
  local keeper_at, named_by = examining.keeper_at, examining.named_by
  local limits_of, cost_maxes = examining.limits_of, examining.cost_maxes
  if not keys[position] or named_by[position] == number then
    return -4
  end
  named_by[position] = number
  local known = keeper_at[position]
  if not known then
    keeper_at[position] = keeper
    if not keeper.whole then
      examining.all_whole, limits_of[position], cost_maxes[position] = false, limit, cost_that_fits(limit, cost)
    end
  elseif known ~= keeper then
    -- Another algorithm's state counts as none, as it would between two calls; but a block or a marker is no state.
    return (not known.whole or not keeper.whole or not counts(known) or not counts(keeper)) and -6 or nil
  elseif not keeper.whole then
    if limits_of[position] ~= limit then
      return -6
    end
    cost_maxes[position] = math.max(cost_maxes[position], cost_that_fits(limit, cost))
  end
  return nil
end

-- Notes the markers of a request that has any. Returns what is wrong, or nil.
local function name_markers(keys, request, number)
  local operation = request[1]
  if operation == voiding then
    return not integers.is_count(request[3]) and -1 or name_key(keys, request[4], number, keepers.of('settling'))
  end
  if not integers.is_count(request[4]) then
    return -1
  end
  local problem = request[3] ~= 0 and name_key(keys, request[3], number, keepers.of('tally'))
  if problem then
    return problem
  end
  if operation ~= keeping then
    local once = keepers.of('once')
    problem = not once.is_id(request[5]) and -1 or name_key(keys, request[6], number, once)
    if problem or operation == charging_once then
      return problem
    end
  end
  local settling, after = keepers.of('settling'), first_limit_at[operation]
  return not settling.is_asked(request, after) and -1 or name_key(keys, request[after - 2], number, settling)
end

-- Returns what is wrong with a request, or nil and the number of its limits.
local function examine(request, number, limits, keys, limits_per_request_max)
  local keeper_at, named_by = examining.keeper_at, examining.named_by
  local first = type(request) == 'table' and first_limit_at[request[1]]
  if not first then
    return -1
  end
  local operation, cost, length = request[1], request[2], #request
  local costs = type(cost) == 'table' and operation <= refunding and cost
  if not costs and not integers.is_count(cost) then
    return -2
  elseif operation == refunding and (length == 3 or not integers.is_count(request[3])) then
    -- Only shadow limits, none of which was charged: there is nothing to give back.
    return not integers.is_count(request[3]) and -1 or nil, 0
  elseif operation > refunding then
    local problem = name_markers(keys, request, number)
    if problem or operation > charging_once and length == first - 1 then
      return problem, 0
    end
  end
  local at, count = first, 0
  repeat
    local limit = limits[request[at]]
    if at >= length then
      return -1
    elseif not limit then
      return -3
    end
    if costs then
      cost = costs[count + 1]
      if cost ~= -1 and not integers.is_count(cost) then
        return -2
      end
      cost = math.abs(cost)
    end
    local position, algorithm = request[at + 1], limit.algorithm
    if algorithm.whole and keys[position] and not keeper_at[position] then
      keeper_at[position], named_by[position] = algorithm, number -- what name_key does, for what is by far the most frequent
    else
      local problem = name_key(keys, position, number, algorithm, limit, cost)
      if problem then
        return problem
      end
    end
    at = at + 2
    if limit.block_ms > 0 and operation ~= refunding and operation ~= voiding then
      local problem = name_key(keys, request[at], number, keepers.of('block'))
      if problem then
        return problem
      end
      at = at + 1
    end
    count = count + 1
  until at > length
  return (count > limits_per_request_max or costs and #costs ~= count) and -1 or nil, count
end

-- Returns by number of the request what is wrong with it (a verdict of the reply, or nil) and how many limits it has. What is to be read
-- stands in `examining` then: keeper_at, limits_of, cost_maxes, and whether all keys are read whole.
function examining.all(requests, limits, keys, limits_per_request_max)
  local wrong, limit_counts = {}, {}
  for number = 1, #requests do
    wrong[number], limit_counts[number] = examine(requests[number], number, limits, keys, limits_per_request_max)
  end
  return wrong, limit_counts
end
