-- How many markers a subject has in Redis, so that they are bounded however many processes write them: a marker counts from when it is
-- written until it has expired for certain. Counts never fall before that, so no more markers exist than are counted.
local tally = {}

-- Tag; then pairs: the second at which markers have expired, and how many of them.
local tag, pair_length = string.byte('n'), 8

tally.whole = true

-- What is written beside a marker, or when it is settled, lives this much longer.
local once_ms, settling_ms = 60000, 900000
-- Of what is kept longest; a later end is of a clock that was set back since.
local longest_s = 100000

function tally.load(value)
  return value and #value % pair_length == 1 and string.byte(value) == tag and value or nil
end

-- Ends are rounded up by at most an eighth of the time, so that there are at most 17 pairs for one time, and 250 for all.
local function end_of(kept_ms, now_ms)
  local width_s = 1
  while width_s * 16000 <= kept_ms do
    width_s = width_s * 2
  end
  return math.ceil((now_ms + kept_ms) / (width_s * 1000)) * width_s
end

-- once_kept_ms, settling_kept_ms: how long the request's markers are kept; false for one that it has not. Returns how long to wait
-- until there is room (0 for none), or else the next state and its expiry.
function tally.plan(state, once_kept_ms, settling_kept_ms, most, now_ms)
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
  if once_kept_ms then
    add(end_of(once_kept_ms + once_ms, now_ms), 1)
  end
  if settling_kept_ms then
    add(end_of(settling_kept_ms + settling_ms, now_ms), 1)
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

tally.save = stored.save
