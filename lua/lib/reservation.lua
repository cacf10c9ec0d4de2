-- The marker of a reservation: what a decision was charged that is to be settled. decide.lua writes it with the charge,
-- and settle.lua replaces it. What follows `head` is the business of packages/redis/src/settlement-marker.ts alone.
local reservation = {}

-- Tag; phase (OPEN; RECORD_PENDING once it is settled; RECORDED once its record is safe; VOID once the charge was
-- refunded); expiry (milliseconds); when it was charged (microseconds); the limits that were not charged, as a mask;
-- the cost, 0 where each limit has its own: the text then says the request's.
local head, head_length, tag = '>BBdddd', 34, string.byte('s')
local text_length_max = 65536

reservation.whole = true
-- A day: what takes longer than the period of its quota is counted from scratch instead of settled.
reservation.ttl_ms_max = 86400000

-- A request has the time to live, the marker's key and the text's position in ARGV right before its limits, which begin
-- at `after`.
function reservation.is_valid(request, after)
  local ttl_ms, text = request[after - 3], ARGV[request[after - 1]]
  return integers.is_count(ttl_ms)
    and ttl_ms <= reservation.ttl_ms_max
    and type(text) == 'string'
    and #text <= text_length_max
end

function reservation.load(value)
  return value and #value >= head_length and string.byte(value) == tag and value or nil
end

-- Returns the state for a request that was charged now, except to the limits of this mask, and its expiry.
function reservation.state(request, after, now_us, mask)
  local until_ms = math.floor(now_us / 1000) + request[after - 3]
  local cost = type(request[2]) == 'number' and request[2] or 0
  return struct.pack(head, tag, phases.OPEN, until_ms, now_us, mask, cost) .. ARGV[request[after - 1]], until_ms
end

-- Returns when an open one was charged, and the mask; nil for one that is settled, refunded or not there.
function reservation.charge(state)
  if not state or string.byte(state, 2) ~= phases.OPEN then
    return nil
  end
  local _, _, _, charged_us, mask = struct.unpack(head, state)
  return charged_us, mask
end

function reservation.void(state)
  return struct.pack('>BB', tag, phases.VOID) .. string.sub(state, 3)
end

reservation.save = save.value
