-- The tally counts the markers of a subject, so that they are bounded however many processes write them. A marker
-- counts from when it is written until it has expired for certain, so no more markers exist than are counted.
local tally = {}

-- Tag; then pairs: the second at which markers have expired, and how many of them.
local tag, pair_length = string.byte('n'), 8

tally.whole = true

-- Keys that are written alongside a marker, or when it is settled, live this much longer.
local once_ms, reservation_ms = 60000, 900000
-- The longest time to live; a later end was written before a clock was set back.
local longest_s = 100000

function tally.load(value)
  return value and #value % pair_length == 1 and string.byte(value) == tag and value or nil
end

-- Ends are rounded up by at most an eighth of the time, so that there are at most 17 pairs for one time, and 250 for
-- all.
local function end_of(kept_ms, now_ms)
  local width_s = 1
  while width_s * 16000 <= kept_ms do
    width_s = width_s * 2
  end
  return math.ceil((now_ms + kept_ms) / (width_s * 1000)) * width_s
end

-- once_ttl_ms, reservation_ttl_ms: the time to live of the request's markers; false for a marker that it does not have.
-- Returns how long to wait until a marker fits; or 0, the next state and its expiry.
function tally.plan(state, once_ttl_ms, reservation_ttl_ms, most, now_ms)
  local now_s = math.floor(now_ms / 1000)
  local ends, counts, total, soonest, last = {}, {}, 0, now_s + longest_s, now_s
  local function add(end_s, count)
    if not counts[end_s] then
      ends[#ends + 1] = end_s
    end
    counts[end_s] = (counts[end_s] or 0) + count
    total = total + count
    soonest, last = math.min(soonest, end_s), math.max(last, end_s)
  end
  if state then
    local numbers = { struct.unpack('>' .. string.rep('I4', (#state - 1) / 4), state, 2) }
    for at = 1, #numbers - 1, 2 do
      if numbers[at] > now_s and numbers[at] - now_s <= longest_s then
        add(numbers[at], numbers[at + 1])
      end
    end
  end
  local wait_ms = soonest * 1000 - now_ms
  if once_ttl_ms then
    add(end_of(once_ttl_ms + once_ms, now_ms), 1)
  end
  if reservation_ttl_ms then
    add(end_of(reservation_ttl_ms + reservation_ms, now_ms), 1)
  end
  if total > most then
    return wait_ms
  end
  local parts = {}
  for at, end_s in ipairs(ends) do
    parts[at] = struct.pack('>I4I4', end_s, counts[end_s])
  end
  return 0, string.char(tag) .. table.concat(parts), last * 1000 + clock.step_back_ms_max
end

tally.save = save.value
