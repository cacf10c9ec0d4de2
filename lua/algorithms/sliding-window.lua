-- At most `size` units over a window that slides, estimated from two cells of the window's length aligned to the epoch:
-- the units of the current cell, and those of the previous one by the share of it that the window still covers, rounded
-- up:
--   used = current + ceil(previous × (window - elapsed) / window)
-- The source is the two-cell estimate that Cloudflare described ("How we built rate limiting capable of scaling to
-- millions of domains", 2017, by Julien Desgats), which Kong and Upstash use too.
--
-- Over a true window of the same length just under 2 × size may pass: size units at the end of one cell, and almost as
-- many while they lose their weight through the next (docs/decisions/0004-two-cells-admit-just-under-twice.md).
--
-- State: the stored value itself, 41 bytes, big-endian: a tag; window_ms (as the cells are long); how far into its cell
-- the last unit was charged, in milliseconds; and as doubles the cell's start in milliseconds, the units of the current
-- and of the previous cell, and the time in microseconds since which cells are this long. The twin, line by line:
-- packages/core/src/algorithms/sliding-window.ts
local sliding_window = {}

local layout, layout_length, tag = '>BI4I4dddd', 41, string.byte('w')
-- A day, as the policy says: then a product of two remainders of a window is exact.
local window_ms_max = 86400000
local units_max = 9007199254740991
local floor, ceil, pack, unpack_state = math.floor, math.ceil, struct.pack, struct.unpack

sliding_window.whole = true

-- definition: {name, mode, block_ms, size, window_ms}. Returns the checked arguments, or nil.
function sliding_window.arguments(definition)
  local size, window_ms = definition[4], definition[5]
  if not integers.is_count(size) or size == 0 or not integers.is_count(window_ms) then
    return nil
  elseif window_ms == 0 or window_ms > window_ms_max then
    return nil
  end
  return { size = size, window_ms = window_ms }
end

function sliding_window.load(value)
  return value and #value == layout_length and string.byte(value) == tag and value or nil
end

-- ceil(previous × left_ms / window_ms), exact: previous is split so that no product passes 2^53.
local function weigh(previous, left_ms, window_ms)
  local rest = previous % window_ms
  return (previous - rest) / window_ms * left_ms + ceil(rest * left_ms / window_ms)
end

local function no_cells(window_ms, now_ms, rebased)
  return window_ms, now_ms - now_ms % window_ms, 0, 0, nil, 0, nil, nil, rebased
end

-- The cells as they stand now: their length (the stored one until a charge makes it the limit's), the current one's
-- start, its units, the previous one's, the time when nothing of a longer window counts any more (or nil), how far into
-- the current cell the last unit was charged, since when cells are this long, the stored start, and whether units were
-- dropped because the clock was set back. Without stored cells that count the last four are nil.
local function cells_at(state, window_ms, now_ms)
  if not state then
    return no_cells(window_ms, now_ms, false)
  end
  local _, length_ms, last_ms, start_ms, current, previous, since_us = unpack_state(layout, state)
  local gone_ms = length_ms > window_ms and start_ms + last_ms + window_ms or nil
  if start_ms - now_ms > clock.step_back_ms_max then
    return no_cells(window_ms, now_ms, true)
  elseif now_ms >= start_ms + 2 * length_ms or gone_ms and now_ms >= gone_ms then
    return no_cells(window_ms, now_ms, false)
  elseif now_ms >= start_ms + length_ms then
    return length_ms, start_ms + length_ms, 0, current, gone_ms, 0, since_us, start_ms, false
  end
  return length_ms, start_ms, current, previous, gone_ms, last_ms, since_us, start_ms, false
end

-- The first time at which not more than `allowed` units are used. Only called while more are.
local function time_of(allowed, length_ms, start_ms, current, previous)
  local units, room, end_ms = previous, allowed - current, start_ms + length_ms
  if room < 0 then
    units, room, end_ms = current, allowed, end_ms + length_ms
  end
  -- Divided first the product stays small; what rounding can miss by one, comparing exactly corrects.
  local left_ms = floor(room / units * length_ms)
  if weigh(units, left_ms, length_ms) > room then
    left_ms = left_ms - 1
  elseif weigh(units, left_ms + 1, length_ms) <= room then
    left_ms = left_ms + 1
  end
  return end_ms - left_ms
end

-- Returns what the plan of fixed-window.lua returns.
--
-- Units counted over another window (the limit was edited) keep their weights until a charge carries them whole into
-- the current cell; and those of a longer window count no longer than one new window after the last of them.
function sliding_window.plan(state, arguments, cost, now_us, now_ms)
  local size, window_ms = arguments.size, arguments.window_ms
  local length_ms, start_ms, current, previous, gone_ms, last_ms, since_us, stored_start_ms, rebased =
    cells_at(state, window_ms, now_ms)
  local used = current
  if previous > 0 then
    -- A clock that steps back a little stands still at the cell's start.
    used = used + weigh(previous, now_ms > start_ms and start_ms + length_ms - now_ms or length_ms, length_ms)
    -- A step back within a cell gives the previous one weight again, above the size and what is exact.
    used = used < units_max and used or units_max
  end
  local remaining = used < size and size - used or 0
  if cost > remaining or cost == 0 then
    local free_ms = current > 0 and start_ms + 2 * length_ms or previous > 0 and start_ms + length_ms or now_ms
    local reset_ms = (gone_ms and gone_ms < free_ms and gone_ms or free_ms) - now_ms
    if cost == 0 or cost > size then
      return cost == 0 and 0 or -1, used, remaining, reset_ms
    end
    local at_ms = time_of(size - cost, length_ms, start_ms, current, previous)
    return (gone_ms and gone_ms < at_ms and gone_ms or at_ms) - now_ms, used, remaining, reset_ms
  end
  current = current + cost
  if length_ms ~= window_ms then
    start_ms, current, previous, last_ms, since_us = now_ms - now_ms % window_ms, used + cost, 0, 0, now_us
    stored_start_ms = nil
  end
  if now_ms - start_ms > last_ms then
    last_ms = now_ms - start_ms
  end
  local next_state = pack(layout, tag, window_ms, last_ms, start_ms, current, previous, since_us or now_us)
  local end_ms = start_ms + 2 * window_ms
  local expires_ms = start_ms ~= stored_start_ms and end_ms + clock.step_back_ms_max or nil
  return 0, used + cost, remaining - cost, end_ms - now_ms, next_state, expires_ms, rebased
end

-- Takes the cost out of the cell that it was charged in, while that counts. What an edited window carried over is no
-- longer known by its time and stays. Returns next_state, or nil when nothing changes; its expiry stays right.
function sliding_window.refund(state, arguments, cost, at_us, now_us)
  if not state then
    return nil
  end
  local _, length_ms, last_ms, start_ms, current, previous, since_us = unpack_state(layout, state)
  local after_ms, now_ms = floor(at_us / 1000) - start_ms, floor(now_us / 1000)
  if at_us < since_us or after_ms >= length_ms or after_ms < -length_ms then
    return nil
  end
  local units, end_ms = current, start_ms + 2 * length_ms
  if after_ms < 0 then
    units, end_ms = previous, start_ms + length_ms
  end
  local given_back = cost < units and cost or units
  if given_back == 0 or now_ms >= end_ms then
    return nil
  elseif after_ms < 0 then
    previous = previous - given_back
  else
    current = current - given_back
  end
  return pack(layout, tag, length_ms, last_ms, start_ms, current, previous, since_us)
end

-- Counts `units` more for a cost that was charged at `at_us`, whether they fit or not: in the cell that it was charged
-- in, or was carried into by an edited window, while that has weight. Returns next_state and expires_ms as plan does;
-- nil when nothing changes.
function sliding_window.raise(state, arguments, units, at_us, now_us)
  local length_ms, start_ms, current, previous, _, last_ms, since_us, stored_start_ms =
    cells_at(state, arguments.window_ms, floor(now_us / 1000))
  since_us = since_us or at_us
  -- A clock that stepped back a little may have charged it ahead of the cell.
  local after_ms = math.min(floor(math.max(at_us, since_us) / 1000) - start_ms, length_ms - 1)
  if units == 0 or after_ms < -length_ms then
    return nil
  elseif after_ms < 0 then
    previous = math.min(previous + units, units_max)
  else
    current, last_ms = math.min(current + units, units_max), math.max(last_ms, after_ms)
  end
  local expires_ms = start_ms ~= stored_start_ms and start_ms + 2 * length_ms + clock.step_back_ms_max or nil
  return pack(layout, tag, length_ms, last_ms, start_ms, current, previous, since_us), expires_ms
end

-- Kept for the largest small step back beyond the end of its weight; from then on it means the same as no state.
sliding_window.save = save.value
