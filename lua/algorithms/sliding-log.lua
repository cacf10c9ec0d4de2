-- At most `size` units in every true window of the length: exact. Each admitted unit leaves its time, a stamp, which
-- counts until it is a window old; stamps of the same microsecond all count. The source is the log of times of every
-- textbook; the ring that stores it is our own.
--
-- Stored: one string of a header, up to 16 stamps, and behind them, for logs of more, a ring of 8-byte stamps. The 16
-- places hold copies of the ring's oldest, so that reading them is enough for most calls, and then the newest, until
-- they are so many that they move into the ring together: an admission reads once and mostly writes once. Header: tag,
-- whether the string was cut to its length, slots of the ring, slot of its oldest stamp, stamps in it, copies of its
-- oldest, stamps not in it, the newest stamp, the key's expiry, and the window by which it was set. What no longer
-- counts stays stored until the next write.
--
-- A window that is shortened counts immediately; one that is lengthened counts from the next admission on, which moves
-- the expiry too.
--
-- Tag: `l`, or `L` where slots need 17 bits: three of them are in the byte behind the tag then.
--
-- State: the stamps that count, oldest first: `kept` ones of the ring, and behind them `tail`, the bytes of those that
-- are not in it. `ring.ahead` has the bytes of those kept ones that the call may have to wait for, from position
-- `ring.ahead_at` on. Without kept ones all is rewritten, as one short string if it is short. Positions count from
-- 0. The twin: packages/core/src/algorithms/sliding-log.ts
local sliding_log = {}

-- It reads the key itself, and only what it needs.
sliding_log.whole = false
sliding_log.gives_back_latest = true

-- Few locals: the functions are made again in every call, and each local that they see makes that slower.
local layout, header_length, ring_at = '>c1BHHHBBddI5', 31, 159
local places, copies_max = 16, 8

-- definition: {name, mode, block_ms, size, window_ms}. Returns the checked arguments, or nil.
function sliding_log.arguments(definition)
  local size, window_ms = definition[4], definition[5]
  if not integers.is_count(size) or size == 0 or size > 100000 then
    return nil -- 800 kB when full. The policy's parser has the same bound.
  elseif not integers.is_count(window_ms) or window_ms == 0 or not integers.is_count(window_ms * 1000) then
    return nil
  end
  return { size = size, window_ms = window_ms, window_us = window_ms * 1000 }
end

-- Numbers of slots are written as 16 bits, and the 17th of each beside `is_cut`.
local function header(is_cut, capacity, first, kept, copied, pending, state)
  local tag, half = 'l', 65536
  if capacity >= half then
    tag = 'L'
    is_cut = is_cut + 2 * math.floor(capacity / half) + 4 * math.floor(first / half) + 8 * math.floor(kept / half)
    capacity, first, kept = capacity % half, first % half, kept % half
  end
  return struct.pack(
    layout, tag, is_cut, capacity, first, kept, copied, pending, state.newest, state.expires_ms, state.window_us / 1000
  )
end

-- As `header` wrote it, with the bytes behind it.
local function read_header(value)
  local tag, flags, capacity, first, kept, copied, pending, newest, expires_ms, window_ms = struct.unpack(layout, value)
  if tag == 'L' then
    local half = 65536
    capacity = capacity + math.floor(flags / 2) % 2 * half
    first, kept = first + math.floor(flags / 4) % 2 * half, kept + math.floor(flags / 8) * half
  end
  return flags % 2, capacity, first, kept, copied, pending, newest, expires_ms, window_ms
end

-- The stamp at this position of the bytes, counted from 0.
local function stamp_in(bytes, position)
  return (struct.unpack('>d', bytes, position * 8 + 1))
end

-- The bytes of so many units of that time. Concatenation copies blocks where string.rep copies byte by byte.
local function stamps_of(stamp_us, count)
  if count < 64 then
    return string.rep(struct.pack('>d', stamp_us), count)
  end
  local half = stamps_of(stamp_us, math.floor(count / 2))
  return count % 2 == 0 and half .. half or half .. half .. struct.pack('>d', stamp_us)
end

-- Bytes of the ring's stamps from `from` up to but without `to`.
local function read_stamps(ring, from, to)
  if from >= to then
    return ''
  end
  local slot, count = (ring.first + from) % ring.capacity, to - from
  local start, until_end = ring_at + slot * 8, ring.capacity - slot
  if count <= until_end then
    return redis.call('GETRANGE', ring.key, start, start + count * 8 - 1)
  end
  return redis.call('GETRANGE', ring.key, start, start + until_end * 8 - 1)
    .. redis.call('GETRANGE', ring.key, ring_at, ring_at + (count - until_end) * 8 - 1)
end

-- The first position of low … high whose stamp is above `bound_us`, of these bytes or else of the ring; high + 1 if
-- none is.
local function first_above(bound_us, low, high, bytes, ring)
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local stamp = bytes and stamp_in(bytes, middle) or stamp_in(read_stamps(ring, middle, middle + 1), 0)
    if stamp > bound_us then
      high = middle - 1
    else
      low = middle + 1
    end
  end
  return low
end

-- Without those of the bytes that are at or before `bound_us`.
local function stamps_above(bound_us, bytes)
  local count = #bytes / 8
  return string.sub(bytes, first_above(bound_us, 0, count - 1, bytes) * 8 + 1)
end

-- Takes those at or before `bound_us` out of the ring, of which the oldest is one. Returns how many are left.
local function drop_expired(ring, kept, bound_us)
  local from, to = 0, #ring.ahead / 8
  local left = stamps_above(bound_us, ring.ahead)
  if left == '' then
    from, to = to, math.min(kept, to + copies_max)
    left = stamps_above(bound_us, read_stamps(ring, from, to))
  end
  local expired = to - #left / 8
  if left == '' then
    expired = first_above(bound_us, to, kept - 1, nil, ring)
    left = read_stamps(ring, expired, math.min(kept, expired + copies_max))
  end
  ring.first, ring.ahead = (ring.first + expired) % ring.capacity, left
  return kept - expired
end

-- A value that another algorithm wrote (the limit was edited) counts as none. cost_max: the largest cost that a request
-- of the call has. A refusal waits until the stamp that is in the way of its cost no longer counts: that is one of the
-- first cost_max, further on by as many as there are above a size that was lowered.
function sliding_log.load(_, key, arguments, cost_max, now_us)
  local value = redis.call('GETRANGE', key, 0, ring_at - 1)
  if #value < header_length or not string.find(value, '^[lL]') then
    return nil
  end
  local is_cut, capacity, first, kept, copied, pending, newest, expires_ms, window_ms = read_header(value)
  local is_ahead = newest - now_us > clock.step_back_ms_max * 1000
  local window_us = math.min(window_ms, arguments.window_ms) * 1000
  local bound_us = (newest > now_us and newest or now_us) - window_us
  if kept + pending == 0 or newest <= bound_us or is_ahead then
    return { kept = 0, tail = '', newest = 0, expires_ms = expires_ms, window_us = window_us, rebased = is_ahead }
  end
  local first_pending = header_length + copied * 8
  local tail = string.sub(value, first_pending + 1, first_pending + pending * 8)
  local state = { kept = kept, tail = tail, newest = newest, expires_ms = expires_ms, window_us = window_us }
  if kept == 0 then
    state.tail = stamps_above(bound_us, tail)
    return state
  end
  local ahead = string.sub(value, header_length + 1, first_pending)
  local ring = { key = key, is_cut = is_cut, capacity = capacity, first = first, ahead = ahead, ahead_at = 0 }
  if stamp_in(ahead, 0) <= bound_us then
    kept = drop_expired(ring, kept, bound_us)
    if kept == 0 then
      tail = stamps_above(bound_us, tail)
    end
  end
  local size, known, count = arguments.size, #ring.ahead / 8, kept + #tail / 8
  if count <= places or count < size and capacity ~= size then
    state.kept, state.tail = 0, ring.ahead .. read_stamps(ring, known, kept) .. tail
    return state
  end
  local from = count > size and count - size or 0
  local to = math.min(kept, from + math.min(cost_max, size))
  if to > known then
    ring.ahead, ring.ahead_at = from == 0 and ring.ahead .. read_stamps(ring, known, to) or read_stamps(ring, from, to), from
  end
  state.ring, state.kept, state.tail = ring, kept, tail
  return state
end

local function left_ms(stamp, window_us, now_us)
  return math.ceil((window_us - (now_us - stamp)) / 1000)
end

-- Returns wait_ms, used, remaining, reset_ms, next_state, expires_ms, rebased as fixed-window.lua does. Stamps never go
-- back: what is charged while the clock stands behind the newest counts from the newest on.
function sliding_log.plan(state, arguments, cost, now_us)
  state = state or { kept = 0, tail = '', newest = 0, expires_ms = 0, window_us = arguments.window_us }
  local size, ring, kept, tail, newest = arguments.size, state.ring, state.kept, state.tail, state.newest
  local used = kept + #tail / 8
  local remaining, reset_ms = used < size and size - used or 0, used > 0 and left_ms(newest, state.window_us, now_us) or 0
  if cost > size then
    return -1, used, remaining, reset_ms
  elseif cost > remaining then
    local at = used + cost - size - 1
    local stamp = at < kept and stamp_in(ring.ahead, at - ring.ahead_at) or stamp_in(tail, at - kept)
    return left_ms(stamp, state.window_us, now_us), used, remaining, reset_ms
  elseif cost == 0 then
    return 0, used, remaining, reset_ms
  end
  newest = used > 0 and newest > now_us and newest or now_us
  local end_ms = math.ceil(newest / 1000) + arguments.window_ms + clock.step_back_ms_max
  local expires_ms
  if state.expires_ms < end_ms or state.expires_ms > end_ms + arguments.window_ms + 1000 then
    -- Later than it must come, by 1 s to 1 h, so that it is rarely set.
    expires_ms = end_ms + math.max(1000, math.min(3600000, math.floor(arguments.window_ms / 2)))
  end
  local next_state = {
    ring = ring, kept = kept, tail = tail .. stamps_of(newest, cost), newest = newest,
    expires_ms = expires_ms or state.expires_ms, window_us = arguments.window_us, size = size,
  }
  return 0, used + cost, remaining - cost, left_ms(newest, arguments.window_us, now_us), next_state, expires_ms, state.rebased or false
end

-- Takes out at most `cost` stamps of that time, with at_us 0 the latest, and moves those behind them up. Reads what
-- plan need not know. Returns next_state, or nil when none of them counts; the expiry stays right.
function sliding_log.refund(state, arguments, cost, at_us)
  local count = state and state.kept + #state.tail / 8 or 0
  if count == 0 or cost == 0 or at_us > state.newest then
    return nil
  end
  local ring, kept, tail = state.ring, state.kept, state.tail
  if kept > 0 and count > arguments.size then
    kept, tail = 0, read_stamps(ring, 0, kept) .. tail
  end
  local function position_above(bound_us)
    local in_ring = first_above(bound_us, 0, kept - 1, nil, ring)
    return in_ring < kept and in_ring or kept + first_above(bound_us, 0, count - kept - 1, tail)
  end
  local above = at_us == 0 and count or position_above(at_us)
  local from = math.max(above - cost, at_us == 0 and 0 or position_above(at_us - 1))
  if from == above then
    return nil
  end
  local behind = string.sub(tail, math.max(above - kept, 0) * 8 + 1, (count - kept) * 8)
  if from >= kept then
    tail = string.sub(tail, 1, (from - kept) * 8) .. behind
  else
    kept, tail = from, read_stamps(ring, above, kept) .. behind
  end
  local newest = state.newest
  if above == count then
    local last = from > kept and stamp_in(tail, from - kept - 1) or from > 0 and stamp_in(read_stamps(ring, kept - 1, kept), 0)
    newest = last or 0
  end
  return {
    ring = ring, kept = kept, tail = tail, newest = newest,
    expires_ms = state.expires_ms, window_us = state.window_us, size = arguments.size,
  }
end

-- Puts `units` more stamps of that time among the others, as far as the log has space; a full log drops the rest.
-- None if that time is out of the window. Returns next_state and expires_ms as plan does; nil when nothing changes.
function sliding_log.raise(state, arguments, units, at_us, now_us)
  state = state or { kept = 0, tail = '', newest = 0, expires_ms = 0, window_us = arguments.window_us }
  local ring, kept, tail = state.ring, state.kept, state.tail
  local count = kept + #tail / 8
  local newest, window_us = state.newest, state.window_us
  if count == 0 then
    newest, window_us = 0, arguments.window_us
  end
  local added, latest = math.min(units, arguments.size - count), math.max(newest, now_us)
  if added <= 0 or at_us <= latest - window_us then
    return nil
  end
  at_us = math.min(at_us, latest) -- a clock that stepped back a little moves no other stamp out of the window
  local stamps = stamps_of(at_us, added)
  local in_ring = first_above(at_us, 0, kept - 1, nil, ring)
  if in_ring < kept then
    kept, tail = in_ring, stamps .. read_stamps(ring, in_ring, kept) .. tail
  else
    local at = first_above(at_us, 0, count - kept - 1, tail)
    tail = string.sub(tail, 1, at * 8) .. stamps .. string.sub(tail, at * 8 + 1)
  end
  local expires_ms
  if at_us > newest then
    newest = at_us
    expires_ms = math.max(state.expires_ms, math.ceil(newest / 1000) + arguments.window_ms + clock.step_back_ms_max + 1000)
  end
  local next_state = {
    ring = ring, kept = kept, tail = tail, newest = newest,
    expires_ms = expires_ms or state.expires_ms, window_us = window_us, size = arguments.size,
  }
  return next_state, expires_ms
end

-- The first write is one that Redis refuses when it is out of memory; those behind it then go through.
function sliding_log.save(key, state, expires_ms, server_ahead_ms)
  local ring, kept, tail, pending = state.ring, state.kept, state.tail, #state.tail / 8
  if kept == 0 then
    -- Everything is rewritten; a ring begins in its first slot.
    local capacity, value = math.max(state.size, pending), nil
    if pending <= places then
      value = header(0, capacity, 0, 0, 0, pending, state) .. tail
    else
      local is_cut = pending == capacity and 1 or 0
      value = header(is_cut, capacity, 0, pending, places, 0, state) .. string.sub(tail, 1, places * 8) .. tail
    end
    return save.value(key, value, expires_ms, server_ahead_ms)
  end
  local copied, is_cut, fills = math.min(copies_max, kept, #ring.ahead / 8), ring.is_cut, false
  if copied + pending > places then
    local slot = (ring.first + kept) % ring.capacity
    local until_end = ring.capacity - slot
    redis.call('SETRANGE', key, ring_at + slot * 8, string.sub(tail, 1, until_end * 8))
    if pending > until_end then
      redis.call('SETRANGE', key, ring_at, string.sub(tail, until_end * 8 + 1, pending * 8))
    end
    fills = is_cut == 0 and pending >= until_end
    kept, tail, pending, is_cut = kept + pending, '', 0, fills and 1 or is_cut
  end
  local head = header(is_cut, ring.capacity, ring.first, kept, copied, pending, state)
  redis.call('SETRANGE', key, 0, head .. string.sub(ring.ahead, 1, copied * 8) .. tail)
  if fills then
    -- A string that grows gets twice the memory; the ring is now as long as it will be.
    redis.call('SET', key, redis.call('GET', key), 'KEEPTTL')
  end
  if expires_ms then
    redis.call('PEXPIREAT', key, expires_ms + server_ahead_ms)
  end
end
