-- A bucket of `burst` units into which `size` units flow back per window, evenly; a caller who finds it empty waits.
-- With a burst of 1 it is the leaky bucket: units pass evenly spaced. The algorithm is GCRA, the generic cell rate
-- algorithm of ITU-T I.371 (virtual scheduling), which Brandur Leach brought to rate limiting with redis-cell. A single
-- time is kept, at which the bucket is full again; a unit moves it window / size on:
--   used = ceil((full - now) / (window / size)), and a cost is admitted while used + cost <= burst
--
-- Over a true window at most burst + size units pass: a full bucket, and what flows back. For a burst of size that is 2
-- × size.
--
-- Nothing is rounded but what is shown: window / size is a fraction, and the time of fullness is kept as whole
-- microseconds and a numerator over `size`. Sizes and bursts are at most 90,000,000, so that a product of two of them
-- is below 2^53.
--
-- A burst or window that is shortened leaves a bucket that held more as one that the last charge filled to the brim:
-- a caller who used it up waits at most one new filling from there.
--
-- State: the stored value itself, 52 bytes, big-endian: a tag; the time of fullness (microseconds, a double), its
-- numerator, its denominator (the size that charged last) and window_ms; and what a refund must know: the least backlog
-- that charges after a time found (microseconds), that time, and since when this size and window hold (both
-- microseconds, doubles); and the time of the last charge (microseconds, a double). The twin, line by line:
-- packages/core/src/algorithms/token-bucket.ts
local token_bucket = {}

local layout, layout_length, tag = '>BdI4I4I5I6ddd', 52, string.byte('t')
local units_max = 90000000
-- From empty to full at most, as the policy says.
local fill_us_max = 366 * 86400 * 1000000
-- A backlog that no charge found.
local low_none = 2 ^ 48 - 1
local ceil, pack, unpack_state = math.ceil, struct.pack, struct.unpack

token_bucket.whole = true

-- How long `units` take to flow back: whole microseconds, and a numerator over `size`.
local function span(units, size, unit_us, rest_us)
  local parts = units * rest_us
  local numerator = parts % size
  return units * unit_us + (parts - numerator) / size, numerator
end

-- window / size as whole microseconds, and a numerator over `size`.
local function unit_of(size, window_ms)
  local rest_us = window_ms * 1000 % size
  return (window_ms * 1000 - rest_us) / size, rest_us
end

-- definition: {name, mode, block_ms, size, window_ms, burst}. Returns the checked arguments, or nil.
function token_bucket.arguments(definition)
  local size, window_ms, burst = definition[4], definition[5], definition[6]
  if not (integers.is_count(size) and integers.is_count(window_ms) and integers.is_count(burst)) then
    return nil
  elseif size == 0 or size > units_max or burst == 0 or burst > units_max then
    return nil
  elseif window_ms == 0 or window_ms * 1000 > fill_us_max then
    return nil
  end
  local unit_us, rest_us = unit_of(size, window_ms)
  local fill_us, fill_part = span(burst, size, unit_us, rest_us)
  if fill_us > fill_us_max then
    return nil
  end
  return {
    size = size, window_ms = window_ms, burst = burst,
    unit_us = unit_us, rest_us = rest_us, fill_us = fill_us + (fill_part > 0 and 1 or 0),
  }
end

function token_bucket.load(value)
  return value and #value == layout_length and string.byte(value) == tag and value or nil
end

-- What is to flow back until the bucket is full: microseconds and their numerator; then what a refund must know; and
-- whether some of the backlog was dropped because it is more than the bucket holds: the clock was set back, or the
-- burst or window shortened.
local function backlog_of(state, arguments, now_us)
  if not state then
    return 0, 0, low_none, now_us, now_us, false
  end
  local _, full_us, part, size, window_ms, low_us, low_after_us, since_us, last_us = unpack_state(layout, state)
  local backlog_us = full_us - now_us
  if size ~= arguments.size or window_ms ~= arguments.window_ms then
    low_us, low_after_us, since_us = low_none, now_us, now_us
    if size ~= arguments.size and part > 0 then
      backlog_us, part = backlog_us + 1, 0
    end
  end
  local step_back_us_max = clock.step_back_ms_max * 1000
  if backlog_us > arguments.fill_us + step_back_us_max then
    backlog_us = last_us + arguments.fill_us - now_us
    if backlog_us < 0 or last_us - now_us > step_back_us_max then
      backlog_us = 0
    end
    return backlog_us, 0, low_none, now_us, now_us, true
  elseif backlog_us < 0 then
    return 0, 0, low_us, low_after_us, since_us, false
  end
  return backlog_us, part, low_us, low_after_us, since_us, false
end

-- The units that a backlog is, rounded up: an estimate, off by at most one, corrected by comparing exactly.
local function units_of(backlog_us, part, arguments)
  local size, unit_us, rest_us = arguments.size, arguments.unit_us, arguments.rest_us
  local units = ceil((backlog_us + part / size) * size / (arguments.window_ms * 1000))
  local whole_us, whole_part = span(units, size, unit_us, rest_us)
  if whole_us < backlog_us or whole_us == backlog_us and whole_part < part then
    return units + 1
  elseif units > 0 then
    whole_us, whole_part = span(units - 1, size, unit_us, rest_us)
    if whole_us > backlog_us or whole_us == backlog_us and whole_part >= part then
      return units - 1
    end
  end
  return units
end

-- Returns what the plan of fixed-window.lua returns.
function token_bucket.plan(state, arguments, cost, now_us)
  local size, burst = arguments.size, arguments.burst
  local backlog_us, part, low_us, low_after_us, since_us, rebased = backlog_of(state, arguments, now_us)
  local used = (backlog_us > 0 or part > 0) and units_of(backlog_us, part, arguments) or 0
  local remaining = used < burst and burst - used or 0
  if cost > remaining or cost == 0 then
    local reset_ms = ceil((backlog_us + (part > 0 and 1 or 0)) / 1000)
    if cost == 0 or cost > burst then
      return cost == 0 and 0 or -1, used, remaining, reset_ms
    end
    local room_us, room_part = span(burst - cost, size, arguments.unit_us, arguments.rest_us)
    return ceil((backlog_us - room_us + (part > room_part and 1 or 0)) / 1000), used, remaining, reset_ms
  end
  local cost_us, cost_part = span(cost, size, arguments.unit_us, arguments.rest_us)
  if backlog_us < cost_us or backlog_us == cost_us and part < cost_part then
    low_us, low_after_us = low_none, now_us
  elseif backlog_us < low_us then
    low_us = backlog_us
  end
  backlog_us, part = backlog_us + cost_us, part + cost_part
  if part >= size then
    backlog_us, part = backlog_us + 1, part - size
  end
  local full_us, up_us = now_us + backlog_us, part > 0 and 1 or 0
  local next_state = pack(layout, tag, full_us, part, size, arguments.window_ms, low_us, low_after_us, since_us, now_us)
  local expires_ms = ceil((full_us + up_us) / 1000) + clock.step_back_ms_max
  return 0, used + cost, remaining - cost, ceil((backlog_us + up_us) / 1000), next_state, expires_ms, rebased
end

-- Moves the time of fullness back by what the cost took, never before now. But where the bucket would have been full
-- without the charge, what flowed in then would have run over, and that part is not given back. How much it was is not
-- known to the unit from so small a state; two bounds are, and the better one counts:
--   no more ran over than flowed in since the charge;
--   and none at all as long as every later charge found a backlog of the cost or more. The least backlog is kept from
--   the last charge on that found less than its own cost.
-- Every refund lowers the backlogs that later charges found. What was charged at another size or window stays.
-- Returns next_state, or nil when nothing changes; its expiry stays right.
function token_bucket.refund(state, arguments, cost, at_us, now_us)
  if not state or cost == 0 then
    return nil
  end
  local _, full_us, part, size, window_ms, low_us, low_after_us, since_us, last_us = unpack_state(layout, state)
  if at_us < since_us or full_us < now_us or full_us == now_us and part == 0 then
    return nil
  end
  local unit_us, rest_us = unit_of(size, window_ms)
  local back_us, back_part = span(cost < units_max and cost or units_max, size, unit_us, rest_us)
  local safe_us = at_us >= low_after_us and low_us or 0
  local flowed_us = (now_us > low_after_us and now_us or low_after_us) - at_us
  if flowed_us > 0 and safe_us < back_us + (back_part > 0 and 1 or 0) then
    back_us = back_us - flowed_us
    if back_us < safe_us then
      back_us, back_part = safe_us, 0
    end
  end
  if back_us == 0 and back_part == 0 then
    return nil
  end
  full_us, part = full_us - back_us, part - back_part
  if part < 0 then
    full_us, part = full_us - 1, part + size
  end
  if full_us < now_us then
    full_us, part = now_us, 0
  end
  if low_us ~= low_none then
    low_us = low_us - back_us - (back_part > 0 and 1 or 0)
    low_us = low_us > 0 and low_us or 0
  end
  return pack(layout, tag, full_us, part, size, window_ms, low_us, low_after_us, since_us, last_us)
end

-- Takes `units` more out of the bucket now, as far as it has them: a bucket can be empty, and cannot owe. Returns
-- next_state and expires_ms as plan does; nil when nothing changes.
function token_bucket.raise(state, arguments, units, _, now_us)
  local _, _, remaining = token_bucket.plan(state, arguments, 0, now_us)
  local _, _, _, _, next_state, expires_ms = token_bucket.plan(state, arguments, math.min(units, remaining), now_us)
  return next_state, expires_ms
end

-- Kept for the largest small step back beyond the time of fullness; from then on it means the same as no state.
token_bucket.save = save.value
