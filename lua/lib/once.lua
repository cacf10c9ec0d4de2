-- The marker of an idempotency key: the answer that the first admitted request under it was given. Only admissions leave one:
-- what was refused may be tried again.
local once = {}

-- Longer than a client goes on repeating one request; short enough that the markers of a busy subject stay few.
once.kept_ms = 600000

local head, head_length, tag = '>BdB', 10, string.byte('i')
local id_length_max = 64

once.whole = true

function once.is_id(value)
  return type(value) == 'string' and #value > 0 and #value <= id_length_max
end

function once.load(value)
  return value and #value > head_length and string.byte(value) == tag and value or nil
end

-- The first answer, if it still holds.
function once.read(state, now_ms)
  if not state then
    return nil
  end
  local _, until_ms, id_length = struct.unpack(head, state)
  local left_ms = until_ms - now_ms
  if left_ms <= 0 or left_ms > once.kept_ms + clock.step_back_ms_max then
    return nil
  end
  return { id = string.sub(state, head_length + 1, head_length + id_length), numbers = string.sub(state, head_length + id_length + 1) }
end

-- reply[base + 3] and on are the numbers of the admission.
function once.state(id, reply, base, now_ms)
  local count = #reply - base - 2
  return struct.pack(head, tag, now_ms + once.kept_ms, #id) .. id .. struct.pack('>' .. string.rep('d', count), unpack(reply, base + 3))
end

-- Puts the first answer in the place of the limits as they stand now, which stay if the policy has others by now.
function once.repeat_reply(repeated, reply, base, after)
  reply[base], reply[base + 1], reply[base + 2] = 5, 0, 0
  local count = after - base - 3
  if #repeated.numbers == count * 8 then
    local numbers = { struct.unpack('>' .. string.rep('d', count), repeated.numbers) }
    for at = 1, count do
      reply[base + 2 + at] = numbers[at]
    end
  end
end

once.save = stored.save
