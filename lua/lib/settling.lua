-- The marker of a decision that is to be settled: what it was charged, and what corrects it. decide.lua leaves it with the charge,
-- settle.lua replaces it; of what stands behind `head` only packages/redis/src/settlement-marker.ts knows more.
local settling = {}

-- Tag; phase: 0 open, 1 settled with its record owed, 2 settled and recorded, 3 void, because the charge was given back; until
-- when it is kept (milliseconds); when it was charged (microseconds); the limits that were not charged, as bits; the cost.
local head, head_length, tag = '>BBdddd', 34, string.byte('s')
local text_length_max = 65536

settling.whole = true
-- A day: what takes longer than its quota's period is not settled but counted anew.
settling.kept_ms_max = 86400000

-- A request says for how long, where, and with what text it is kept right before its limits, which begin at `after`.
function settling.is_asked(request, after)
  local kept_ms, text = request[after - 3], request[after - 1]
  return integers.is_count(kept_ms) and kept_ms <= settling.kept_ms_max and type(text) == 'string' and #text <= text_length_max
end

function settling.load(value)
  return value and #value >= head_length and string.byte(value) == tag and value or nil
end

-- Returns the state of a request that was charged now, but not to the limits of these bits, and its expiry.
function settling.state(request, after, now_us, bits)
  local until_ms = math.floor(now_us / 1000) + request[after - 3]
  return struct.pack(head, tag, 0, until_ms, now_us, bits, request[2]) .. request[after - 1], until_ms
end

function settling.void(state)
  return struct.pack('>BB', tag, 3) .. string.sub(state, 3)
end

settling.save = stored.save
