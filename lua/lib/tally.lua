-- The tally counts the markers of a subject, so that they are bounded however many processes write them. A marker
-- counts from when it is written until it has expired for certain, so no more markers exist than are counted.
local tally = {}

local ends = state_codecs.of('ends')
-- Tag; then pairs: the second at which markers have expired, and how many of them.
local tag, pair_length, layout = string.byte('n'), 8, 'I4'

tally.whole = true

-- Keys that are written alongside a marker, or when it is settled, live this much longer.
local once_ms, reservation_ms = 60000, 900000

function tally.load(value)
  return value and #value % pair_length == 1 and string.byte(value) == tag and value or nil
end

-- once_ttl_ms, reservation_ttl_ms: the time to live of the request's markers; false for a marker that it does not have.
-- Returns how long to wait until a marker fits; or 0, the next state and its expiry.
function tally.plan(state, once_ttl_ms, reservation_ttl_ms, most, now_ms)
  local now_s = math.floor(now_ms / 1000)
  local list, counts, total = ends.read(state, layout, now_s)
  local soonest_s = ends.span(list) or now_s + ends.longest_s
  if once_ttl_ms then
    total = total + 1
    ends.add(list, counts, ends.after(once_ttl_ms + once_ms, now_ms), 1)
  end
  if reservation_ttl_ms then
    total = total + 1
    ends.add(list, counts, ends.after(reservation_ttl_ms + reservation_ms, now_ms), 1)
  end
  if total > most then
    return soonest_s * 1000 - now_ms
  end
  local next_state, last_s = ends.write(tag, layout, list, counts)
  return 0, next_state, last_s * 1000 + clock.step_back_ms_max
end

tally.save = save.value
