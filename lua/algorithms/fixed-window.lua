-- At most `size` units from one boundary to the next. Boundaries are multiples of a length since the epoch, or those of
-- a calendar period, which TypeScript computes and this clock picks from.
--
-- The source is the counter with an expiry of Redis's own documentation (INCR, "Pattern: Rate limiter").
--
-- Over a true window of the same length up to 2 × size may pass, half on either side of a boundary.
--
-- State: the stored value itself, a tag and two big-endian doubles: the end of the counted span in milliseconds, and
-- its units. Packing them is a quarter of the cost of text. Behind them pairs of lib/ends.lua say which of the units
-- are only held, and until when they may be settled: from then on they count as used. The twin, line by line:
-- packages/core/src/algorithms/fixed-window.ts
local fixed_window = {}

local layout, layout_length, tag = '>Bdd', 17, string.byte('f')
local pair_length, held_ends_max, settles_soon_ms = 12, 24, 2000
local pack, unpack, byte = struct.pack, struct.unpack, string.byte

-- The value is one string, so decide.lua reads the keys of many limits with one command.
fixed_window.whole = true

-- definition: {name, mode, block_ms, size, window_ms} or {name, mode, block_ms, size, 0, start_ms, next_ms,
-- after_next_ms[, hold_ms]}. The three boundaries are this period's start, the next one's, and the one's after that, by
-- TypeScript's clock. hold_ms: for how long the units of this request are only held. Returns the checked arguments, or
-- nil.
function fixed_window.arguments(definition, now_ms)
  local size, window_ms = definition[4], definition[5]
  if not integers.is_count(size) or not integers.is_count(window_ms) then
    return nil
  end
  if window_ms > 0 then
    return { size = size, window_ms = window_ms, end_ms = now_ms - now_ms % window_ms + window_ms }
  end
  local start_ms, next_ms, after_next_ms, hold_ms = definition[6], definition[7], definition[8], definition[9]
  if hold_ms and not (integers.is_count(hold_ms) and hold_ms <= 86400000) then
    return nil
  elseif not (integers.is_count(start_ms) and integers.is_count(next_ms) and integers.is_count(after_next_ms)) then
    return nil
  end
  if start_ms >= next_ms or next_ms >= after_next_ms then
    return nil
  end
  return {
    size = size, window_ms = 0, start_ms = start_ms, next_ms = next_ms, after_next_ms = after_next_ms, hold_ms = hold_ms,
  }
end

-- A value that another algorithm wrote (the limit was edited) counts as none.
function fixed_window.load(value)
  return value and #value % pair_length == layout_length % pair_length and byte(value) == tag and value or nil
end

-- What is held, as lib/ends.lua reads it; it takes the byte before the pairs for their tag.
local function held_in(state, now_ms)
  return state_codecs.of('ends').read(string.sub(state, layout_length), 'd', math.floor(now_ms / 1000))
end

-- Returns the pairs with `units` more, or less below 0, that are held for hold_ms from at_ms on. Callers choose how
-- long, so of many ends the next one that is there is taken: what is held may be held on too long, and counts the same.
local function change_held(pairs_before, hold_ms, units, at_ms, now_ms)
  local ends = state_codecs.of('ends')
  local list, amounts = ends.read(pairs_before, 'd', math.floor(now_ms / 1000))
  local end_s = ends.after(hold_ms, at_ms)
  if not amounts[end_s] and (units < 0 or #list >= held_ends_max) then
    local next_s, _, last_s = nil, ends.span(list)
    for _, other_s in ipairs(list) do
      next_s = other_s > end_s and other_s < (next_s or other_s + 1) and other_s or next_s
    end
    end_s = next_s or last_s or end_s
  end
  if units > 0 or amounts[end_s] then
    ends.add(list, amounts, end_s, math.max(units, -(amounts[end_s] or 0)))
  end
  return string.sub(ends.write(tag, 'd', list, amounts), 2)
end

-- The end of the period that now_ms is in, and of the one after it. Boundaries computed by a clock that is more than a
-- period off are continued at their own distance, so that no request fails for it.
local function calendar_ends(arguments, now_ms)
  local start_ms, next_ms, after_next_ms = arguments.start_ms, arguments.next_ms, arguments.after_next_ms
  local last_ms = after_next_ms - next_ms
  if now_ms >= after_next_ms then
    local end_ms = after_next_ms + (math.floor((now_ms - after_next_ms) / last_ms) + 1) * last_ms
    return end_ms, end_ms + last_ms
  elseif now_ms >= next_ms then
    return after_next_ms, after_next_ms + last_ms
  elseif now_ms >= start_ms then
    return next_ms, after_next_ms
  end
  local first_ms = next_ms - start_ms
  local end_ms = start_ms - math.floor((start_ms - 1 - now_ms) / first_ms) * first_ms
  return end_ms, end_ms + first_ms
end

-- The end of the span that counts now, and whether the stored units count in it.
local function current_span(stored_end_ms, arguments, now_ms)
  local window_ms = arguments.window_ms
  if window_ms > 0 then
    local end_ms = now_ms - now_ms % window_ms + window_ms
    if stored_end_ms <= now_ms then
      return end_ms, false
    elseif stored_end_ms <= end_ms then
      -- Of a shorter window: it goes on to its end, which is when the key expires.
      return stored_end_ms, true
    end
    -- Stored by a clock ahead of this one: a small step back stays in that window, a larger one starts from scratch.
    local ahead_ms = stored_end_ms - window_ms - now_ms
    if ahead_ms <= clock.step_back_ms_max then
      return stored_end_ms, true
    end
    return end_ms, false
  end
  -- A running period goes on to its end, whatever the boundaries say by now: an edited zone or anchor takes effect
  -- there, and no clock goes back to an earlier period. Beyond the next period it was stored by a wrong clock or a
  -- longer unit.
  local end_ms, horizon_ms = calendar_ends(arguments, now_ms)
  if stored_end_ms > now_ms and stored_end_ms <= horizon_ms then
    return stored_end_ms, true
  end
  return end_ms, false
end

-- Returns wait_ms, used, remaining, reset_ms, next_state, expires_ms, rebased. wait_ms: 0 admits, above 0 waiting
-- exactly that long admits, below 0 no waiting ever does. What refuses only for what is held may be free any moment:
-- the wait is a guess then. The numbers are those after the decision; `used` is without what is held. No next_state:
-- nothing is to be stored. No expires_ms: the stored expiry stays right. rebased: units were dropped although their
-- span had not ended.
function fixed_window.plan(state, arguments, cost, now_us, now_ms)
  local size, stored_end_ms, used, counts, end_ms, _ = arguments.size, 0, 0
  if state then
    _, stored_end_ms, used = unpack(layout, state)
  end
  if arguments.end_ms == stored_end_ms then
    end_ms, counts = stored_end_ms, true
  else
    end_ms, counts = current_span(stored_end_ms, arguments, now_ms)
    if not counts then
      used = 0
    end
  end
  local remaining, reset_ms = used < size and size - used or 0, end_ms - now_ms
  local has_held, held = counts and state and #state > layout_length, 0
  if has_held then
    _, _, held = held_in(state, now_ms)
    held = held < used and held or used
  end
  if cost > remaining then
    local wait_ms = held > 0 and used - held + cost <= size and math.min(settles_soon_ms, reset_ms) or reset_ms
    return cost > size and -1 or wait_ms, used - held, remaining, reset_ms
  elseif cost == 0 then
    return 0, used - held, remaining, reset_ms
  end
  used = used + cost
  local expires_ms = end_ms ~= stored_end_ms and end_ms + clock.step_back_ms_max or nil
  local next_state, hold_ms = pack(layout, tag, end_ms, used), arguments.hold_ms
  if hold_ms then
    next_state = next_state .. change_held(has_held and string.sub(state, layout_length) or '', hold_ms, cost, now_ms, now_ms)
    held = held + cost
  elseif has_held then
    next_state = next_state .. string.sub(state, layout_length + 1)
  end
  return 0, used - held, size - used, reset_ms, next_state, expires_ms, not counts and stored_end_ms > now_ms
end

-- Takes the cost out of the span that it was charged in, while that counts; a span that a clock set back or an edited
-- zone has moved keeps it. Returns next_state, or nil when nothing changes; its expiry stays right.
function fixed_window.refund(state, arguments, cost, at_us, now_us)
  if not state or cost == 0 then
    return nil
  end
  local _, end_ms, used = unpack(layout, state)
  local charged_end_ms = current_span(0, arguments, math.floor(at_us / 1000))
  if end_ms * 1000 <= now_us or charged_end_ms ~= end_ms or used == 0 then
    return nil
  end
  local held, hold_ms = string.sub(state, layout_length + 1), arguments.hold_ms
  if hold_ms then
    held = change_held(string.sub(state, layout_length), hold_ms, -cost, math.floor(at_us / 1000), math.floor(now_us / 1000))
  end
  return pack(layout, tag, end_ms, cost < used and used - cost or 0) .. held
end

-- Counts `units` more for a cost that was charged at `at_us`, whether they fit or not: in the span that now runs,
-- unless the one that the cost was charged in is over. Returns next_state and expires_ms as plan does; nil when nothing
-- changes.
function fixed_window.raise(state, arguments, units, at_us, now_us)
  local now_ms = math.floor(now_us / 1000)
  local charged_end_ms = current_span(0, arguments, math.floor(at_us / 1000))
  if units == 0 or charged_end_ms <= now_ms then
    return nil
  end
  local stored_end_ms, used, _ = 0, 0
  if state then
    _, stored_end_ms, used = unpack(layout, state)
  end
  local end_ms, counts = current_span(stored_end_ms, arguments, now_ms)
  local held, hold_ms = counts and string.sub(state, layout_length + 1) or '', arguments.hold_ms
  if hold_ms then
    held = change_held(counts and string.sub(state, layout_length) or '', hold_ms, units, math.floor(at_us / 1000), now_ms)
  end
  if counts then
    return pack(layout, tag, end_ms, math.min(used + units, 9007199254740991)) .. held
  end
  return pack(layout, tag, charged_end_ms, units) .. held, charged_end_ms + clock.step_back_ms_max
end

-- Kept for the largest small step back beyond its end; from then on it means the same as no state.
fixed_window.save = save.value
