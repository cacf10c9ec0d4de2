-- At most `size` slots at a time: requests in flight, each of which ends by itself unless it is given back or renewed
-- before. The slots of a process that died are free once their time to live is over, rounded up by at most an eighth.
--
-- The source is the semaphore of leases with an expiry (Gray and Cheriton, "Leases", 1989); one string of at most 250
-- pairs instead of a sorted set with a member for each slot.
--
-- Nobody knows when a slot is given back, so the wait of a denial is a guess: the one exception to rule 6.
--
-- A gateway gives back one slot for each request, also for one that was refused. A refused one is therefore counted
-- beside the slots, and the next that is given back is that one. So there are never fewer slots than requests that
-- passed and have not ended, as long as refused ones are given back at once.
--
-- State: lib/ends.lua. The twin, line by line: packages/core/src/algorithms/concurrency.ts
local concurrency = {}

local ends = state_codecs.of('ends')
local tag, pair_length, layout = string.byte('c'), 12, 'd'
local guess_ms = 1000

concurrency.whole = true
concurrency.gives_back_latest = true
-- The time at which `raise` counts a slot that is refused.
concurrency.refused_us = 0

-- definition: {name, mode, block_ms, size, expires_ms}. expires_ms: the time to live of the slots of this request.
function concurrency.arguments(definition)
  local size, expires_ms = definition[4], definition[5]
  local is_right = integers.is_count(size) and integers.is_count(expires_ms) and expires_ms <= 86400000
  return is_right and { size = size, expires_ms = expires_ms } or nil
end

-- A value that another algorithm wrote (the limit was edited) counts as none.
function concurrency.load(value)
  return value and #value % pair_length == 1 and string.byte(value) == tag and value or nil
end

-- Returns wait_ms, used, remaining, reset_ms, next_state, expires_ms, rebased as fixed-window.lua does. reset_ms is
-- until every slot has ended by itself.
function concurrency.plan(state, arguments, cost, _, now_ms)
  local size = arguments.size
  local list, slots, used = ends.read(state, layout, math.floor(now_ms / 1000))
  local remaining = used < size and size - used or 0
  if cost > remaining or cost == 0 then
    local _, last_s = ends.span(list)
    local reset_ms = last_s and last_s * 1000 - now_ms or 0
    return cost == 0 and 0 or cost > size and -1 or guess_ms, used, remaining, reset_ms
  end
  ends.add(list, slots, ends.after(arguments.expires_ms, now_ms), cost)
  local next_state, last_s = ends.write(tag, layout, list, slots)
  local _, slots_last_s = ends.span(list)
  local reset_ms, expires_ms = slots_last_s * 1000 - now_ms, last_s * 1000 + clock.step_back_ms_max
  return 0, used + cost, remaining - cost, reset_ms, next_state, expires_ms, false
end

-- Gives back slots that were taken at at_us; with 0, where nobody knows when they were taken, refused ones or else
-- those that end first. Returns next_state, or nil when none of them is left; its expiry stays right.
function concurrency.refund(state, arguments, cost, at_us, now_us)
  local list, slots = ends.read(state, layout, math.floor(now_us / 1000000))
  local end_s = ends.after(arguments.expires_ms, math.floor(at_us / 1000))
  if at_us == 0 then
    local first_s, _, refused = ends.span(list)
    end_s = refused or first_s
  end
  if cost == 0 or not slots[end_s] then
    return nil
  end
  slots[end_s] = cost < slots[end_s] and slots[end_s] - cost or 0
  return (ends.write(tag, layout, list, slots))
end

-- Takes `units` slots from at_us on, whether they fit or not; with 0 they are refused. Returns next_state and
-- expires_ms as plan does; nil when they have ended by now.
function concurrency.raise(state, arguments, units, at_us, now_us)
  local now_s = math.floor(now_us / 1000000)
  local list, slots = ends.read(state, layout, now_s)
  local taken_us = at_us == 0 and now_us or at_us
  local end_s = ends.after(arguments.expires_ms, math.floor(taken_us / 1000))
  if units == 0 or end_s <= now_s then
    return nil
  end
  ends.add(list, slots, at_us == 0 and -end_s or end_s, units)
  local next_state, last_s = ends.write(tag, layout, list, slots)
  return next_state, last_s * 1000 + clock.step_back_ms_max
end

concurrency.save = save.value
