-- At most `size` units in every true window of the length: exact. Each admitted unit leaves its time, a stamp, which counts
-- until it is a window old; stamps of the same microsecond all count.
--
-- Stored: a header and a ring of 8-byte stamps in one string. Header: tag, whether the string was cut to its length, slots of
-- the ring, slot of the oldest stamp, count, the oldest and the newest stamp, the key's expiry. Few stamps are rewritten with
-- one SET; of many, only the slots that change. Stamps that no longer count stay in the count until the next write.
--
-- State: the stamps that count, oldest first: `kept` of the ring from slot `first` on, and behind them `tail`, the bytes of
-- those that are not stored there yet. Without kept ones all are rewritten. Of the kept ones `oldest` is known, and `ahead`, the
-- bytes of those that the call may have to wait for, of which `ahead_at` is the first. Positions count from 0.
-- The twin: packages/core/src/algorithms/sliding-log.ts
local sliding_log = {}

local layout, header_length, tag = '>BBHHHddd', 32, string.byte('l')
local stamp_layout, stamp_length = '>d', 8

-- 80 kB when full. Also checked by the policy's parser.
local size_max = 10000
-- Up to here one SET of all is cheaper than two SETRANGE, and one GETRANGE reads it whole.
local rewritten_max = 16
-- Read to see which of the oldest no longer count; if all of them, the rest is bisected.
local looked_through = 8
-- The expiry is set this much later than it must come, so that it is rarely set; idle keys stay for as long.
local margin_ms_min, margin_ms_max = 1000, 3600000

-- What no stored value means.
local none = { kept = 0, tail = '', newest = 0, expires_ms = 0 }

-- It reads the key itself, and only what it needs.
sliding_log.whole = false

-- definition: {name, mode, block_ms, size, window_ms}. Returns the checked arguments, or nil.
function sliding_log.arguments(definition)
  local size, window_ms = definition[4], definition[5]
  if not integers.is_count(size) or size == 0 or size > size_max then
    return nil
  elseif not integers.is_count(window_ms) or window_ms == 0 or not integers.is_count(window_ms * 1000) then
    return nil
  end
  return { size = size, window_ms = window_ms, window_us = window_ms * 1000 }
end

-- The stamp at this position of the bytes, counted from 0.
local function stamp_in(bytes, position)
  return (struct.unpack(stamp_layout, bytes, position * stamp_length + 1))
end

local function sub_stamps(bytes, from, to)
  return string.sub(bytes, from * stamp_length + 1, to * stamp_length)
end

-- Bytes of the ring's stamps from `from` up to but without `to`.
local function read_stamps(ring, from, to)
  if from >= to then
    return ''
  end
  local slot, count = (ring.first + from) % ring.capacity, to - from
  local start, until_end = header_length + slot * stamp_length, ring.capacity - slot
  if count <= until_end then
    return redis.call('GETRANGE', ring.key, start, start + count * stamp_length - 1)
  end
  return redis.call('GETRANGE', ring.key, start, start + until_end * stamp_length - 1)
    .. redis.call('GETRANGE', ring.key, header_length, header_length + (count - until_end) * stamp_length - 1)
end

-- The first position of low … high whose stamp is above `bound_us`; high + 1 if none is.
local function first_above(bound_us, low, high, stamp_at)
  while low <= high do
    local middle = math.floor((low + high) / 2)
    if stamp_at(middle) > bound_us then
      high = middle - 1
    else
      low = middle + 1
    end
  end
  return low
end

local function whole_state(tail, newest, expires_ms)
  return { kept = 0, tail = tail, newest = newest, expires_ms = expires_ms }
end

-- Takes those at or before `bound_us` out of the ring; the newest is not among them. Returns the bytes of the oldest that
-- are left, as far as they were read: at least one.
local function drop_expired(ring, bound_us, wanted)
  local looked = math.min(ring.kept, math.max(looked_through, wanted + 1))
  local bytes = read_stamps(ring, 0, looked)
  local expired
  if stamp_in(bytes, looked - 1) > bound_us then
    expired = first_above(bound_us, 0, looked - 2, function(at)
      return stamp_in(bytes, at)
    end)
    bytes = sub_stamps(bytes, expired, looked)
  else
    expired = first_above(bound_us, looked, ring.kept - 2, function(at)
      return stamp_in(read_stamps(ring, at, at + 1), 0)
    end)
    bytes = read_stamps(ring, expired, math.min(ring.kept, expired + math.max(wanted, 1)))
  end
  ring.first, ring.kept = (ring.first + expired) % ring.capacity, ring.kept - expired
  ring.oldest = stamp_in(bytes, 0)
  return bytes
end

-- cost_max: the largest cost that a request of the call has. A refusal waits until the stamp that is in the way of its cost no
-- longer counts. That is one of the first cost_max; further on by as many as there are above a size that was lowered.
local function load_ring(ring, size, cost_max, bound_us)
  local wanted, bytes = math.min(cost_max, size), ''
  if ring.oldest <= bound_us then
    bytes = drop_expired(ring, bound_us, wanted)
  end
  local known, kept = #bytes / stamp_length, ring.kept
  if kept <= rewritten_max or kept < size and ring.capacity ~= size then
    return whole_state(bytes .. read_stamps(ring, known, kept), ring.newest, ring.expires_ms)
  end
  local from = kept > size and kept - size or 0
  local to = math.min(kept, from + wanted)
  if to > known and to > 1 then
    ring.ahead, ring.ahead_at = read_stamps(ring, from, to), from
  else
    ring.ahead, ring.ahead_at = bytes, 0
  end
  return ring
end

-- A value that another algorithm wrote (the limit was edited) counts as none.
function sliding_log.load(_, key, arguments, cost_max, now_us)
  local value = redis.call('GETRANGE', key, 0, header_length + rewritten_max * stamp_length - 1)
  if #value < header_length or string.byte(value) ~= tag then
    return nil
  end
  local _, is_cut, capacity, first, count, oldest, newest, expires_ms = struct.unpack(layout, value)
  if count == 0 then
    return whole_state('', 0, expires_ms)
  elseif newest - now_us > clock.step_back_ms_max * 1000 then
    local state = whole_state('', 0, expires_ms)
    state.rebased = true
    return state
  end
  local bound_us = math.max(now_us, newest) - arguments.window_us
  if newest <= bound_us then
    return whole_state('', 0, expires_ms)
  end
  if first + count <= rewritten_max then
    local expired = first_above(bound_us, first, first + count - 2, function(slot)
      return struct.unpack(stamp_layout, value, header_length + slot * stamp_length + 1)
    end)
    local live_from, live_to = header_length + expired * stamp_length, header_length + (first + count) * stamp_length
    return whole_state(string.sub(value, live_from + 1, live_to), newest, expires_ms)
  end
  return load_ring({
    key = key, is_cut = is_cut, capacity = capacity, first = first, kept = count, tail = '', oldest = oldest, newest = newest,
    expires_ms = expires_ms,
  }, arguments.size, cost_max, bound_us)
end

-- The stamp at a position that a refusal may wait for.
local function stamp_ahead(state, position)
  if position >= state.kept then
    return stamp_in(state.tail, position - state.kept)
  end
  return position == 0 and state.oldest or stamp_in(state.ahead, position - state.ahead_at)
end

-- The same log with other stamps behind the kept ones.
local function changed_state(state, kept, tail, newest)
  return {
    key = state.key, is_cut = state.is_cut, capacity = state.capacity, first = state.first, kept = kept, tail = tail,
    oldest = state.oldest, newest = newest, expires_ms = state.expires_ms, ahead = state.ahead, ahead_at = state.ahead_at,
  }
end

local function left_ms(stamp, arguments, now_us)
  return math.ceil((arguments.window_us - (now_us - stamp)) / 1000)
end

-- Returns wait_ms, used, remaining, reset_ms, next_state, expires_ms, rebased as fixed-window.lua does. Stamps never go back:
-- what is charged while the clock stands behind the newest counts from the newest on.
function sliding_log.plan(state, arguments, cost, now_us)
  state = state or none
  local size, used, newest = arguments.size, state.kept + #state.tail / stamp_length, state.newest
  local remaining, reset_ms = used < size and size - used or 0, used > 0 and left_ms(newest, arguments, now_us) or 0
  if cost > size then
    return -1, used, remaining, reset_ms
  elseif cost > remaining then
    return left_ms(stamp_ahead(state, used + cost - size - 1), arguments, now_us), used, remaining, reset_ms
  elseif cost == 0 then
    return 0, used, remaining, reset_ms
  end
  newest = used > 0 and newest > now_us and newest or now_us
  local tail = state.tail .. string.rep(struct.pack(stamp_layout, newest), cost)
  local next_state, expires_ms = changed_state(state, state.kept, tail, newest), nil
  next_state.size = size
  local end_ms = math.ceil(newest / 1000) + arguments.window_ms + clock.step_back_ms_max
  local margin_ms = math.max(margin_ms_min, math.min(margin_ms_max, math.floor(arguments.window_ms / 2)))
  if state.expires_ms < end_ms or state.expires_ms > end_ms + margin_ms then
    expires_ms = end_ms + margin_ms
    next_state.expires_ms = expires_ms
  end
  return 0, used + cost, remaining - cost, left_ms(newest, arguments, now_us), next_state, expires_ms, state.rebased or false
end

-- Takes out at most `cost` stamps of that time, and moves those behind them up. Reads what plan need not know. Returns
-- next_state, or nil when none of them counts; the expiry stays right.
function sliding_log.refund(state, arguments, cost, at_us)
  local count = state and state.kept + #state.tail / stamp_length or 0
  if count == 0 or cost == 0 or at_us > state.newest then
    return nil
  end
  local kept, tail = state.kept, state.tail
  if count > arguments.size then
    kept, tail = 0, read_stamps(state, 0, kept) .. tail
  end
  local function stamp_at(position)
    if position >= kept then
      return stamp_in(tail, position - kept)
    end
    return stamp_in(read_stamps(state, position, position + 1), 0)
  end
  local above = first_above(at_us, 0, count - 1, stamp_at)
  local from = math.max(above - cost, first_above(at_us - 1, 0, above - 1, stamp_at))
  if from == above then
    return nil
  end
  if from >= kept then
    tail = sub_stamps(tail, 0, from - kept) .. sub_stamps(tail, above - kept, count - kept)
  else
    tail = read_stamps(state, above, kept) .. sub_stamps(tail, math.max(above - kept, 0), count - kept)
    kept = from
  end
  local newest = above < count and state.newest or from > 0 and stamp_at(from - 1) or 0
  local next_state = changed_state(state, kept, tail, newest)
  next_state.size = arguments.size
  return next_state
end

-- Everything anew, as a ring that begins in its first slot.
local function save_whole(key, state, expires_ms, server_ahead_ms)
  local tail = state.tail
  local count = #tail / stamp_length
  local oldest, capacity = count > 0 and stamp_in(tail, 0) or 0, math.max(state.size, count)
  local value = struct.pack(layout, tag, 0, capacity, 0, count, oldest, state.newest, state.expires_ms) .. tail
  if expires_ms then
    redis.call('SET', key, value, 'PXAT', expires_ms + server_ahead_ms)
  else
    redis.call('SET', key, value, 'KEEPTTL')
  end
end

-- The first write is one that Redis refuses when it is out of memory; those behind it then go through.
function sliding_log.save(key, state, expires_ms, server_ahead_ms)
  local kept, tail, capacity = state.kept, state.tail, state.capacity
  if kept == 0 then
    return save_whole(key, state, expires_ms, server_ahead_ms)
  end
  local slot, count = (state.first + kept) % capacity, #tail / stamp_length
  local until_end, is_cut = capacity - slot, state.is_cut
  if count > until_end then
    redis.call('SETRANGE', key, header_length + slot * stamp_length, sub_stamps(tail, 0, until_end))
    redis.call('SETRANGE', key, header_length, sub_stamps(tail, until_end, count))
  elseif count > 0 then
    redis.call('SETRANGE', key, header_length + slot * stamp_length, tail)
  end
  local fills = is_cut == 0 and count >= until_end
  local header = struct.pack(
    layout, tag, fills and 1 or is_cut, capacity, state.first, kept + count, state.oldest, state.newest, state.expires_ms
  )
  redis.call('SETRANGE', key, 0, header)
  if fills then
    -- A string that grows is given twice the room; the ring is as long as it gets.
    redis.call('SET', key, redis.call('GET', key), 'KEEPTTL')
  end
  if expires_ms then
    redis.call('PEXPIREAT', key, expires_ms + server_ahead_ms)
  end
end
