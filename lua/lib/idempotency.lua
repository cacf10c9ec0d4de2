-- The marker of an idempotency key: the answer to the first request under the key that was allowed. A denied request
-- leaves no marker, so that it may be tried again. Behind an attempt's id, after a `~`, may be a fingerprint of what is
-- asked; it ends the marker, where scripts of versions before see an answer of another number of limits.
local idempotency = {}

-- Longer than a client goes on repeating one request; short enough that the markers of a busy subject stay few.
idempotency.ttl_ms = 600000

local head, head_length, tag = '>BdB', 10, string.byte('i')
local id_length_max = 64
-- With its `~`. No multiple of 8, as the numbers are.
local fingerprint_length = 13

idempotency.whole = true

function idempotency.is_id(value)
  return type(value) == 'string' and #value > 0 and #value <= id_length_max
end

function idempotency.load(value)
  return value and #value > head_length and string.byte(value) == tag and value or nil
end

-- Returns the first answer, or nil if it does not hold any more.
function idempotency.read(state, now_ms)
  if not state then
    return nil
  end
  local _, until_ms, id_length = struct.unpack(head, state)
  local left_ms = until_ms - now_ms
  if left_ms <= 0 or left_ms > idempotency.ttl_ms + clock.step_back_ms_max then
    return nil
  end
  local numbers_at = head_length + id_length + 1
  local end_at = #state
  if (end_at - numbers_at + 1) % 8 ~= 0 then
    end_at = end_at - fingerprint_length
  end
  return {
    id = string.sub(state, head_length + 1, numbers_at - 1),
    numbers = string.sub(state, numbers_at, end_at),
    fingerprint = string.sub(state, end_at + 1),
  }
end

local function split(id)
  local at = string.find(id, '~', 1, true) or #id + 1
  return string.sub(id, 1, at - 1), string.sub(id, at)
end

-- Returns the state: the numbers of the answer begin at reply[base + 3].
function idempotency.state(attempt, reply, base, now_ms)
  local id, fingerprint = split(attempt)
  local count = #reply - base - 2
  local numbers = struct.pack('>' .. string.rep('d', count), unpack(reply, base + 3))
  return struct.pack(head, tag, now_ms + idempotency.ttl_ms, #id) .. id .. numbers .. fingerprint
end

-- Replaces the limits as they stand now by the first answer. They stay if the policy has another number of limits by
-- now. The mask is 1 if this attempt asks something else; one without a fingerprint asks the same.
function idempotency.replay(first, attempt, reply, base, after)
  local _, fingerprint = split(attempt)
  local differs = #fingerprint > 0 and #first.fingerprint > 0 and fingerprint ~= first.fingerprint
  reply[base], reply[base + 1], reply[base + 2] = statuses.REPLAYED, differs and 1 or 0, 0
  local count = after - base - 3
  if #first.numbers == count * 8 then
    local numbers = { struct.unpack('>' .. string.rep('d', count), first.numbers) }
    for at = 1, count do
      reply[base + 2 + at] = numbers[at]
    end
  end
end

idempotency.save = save.value
