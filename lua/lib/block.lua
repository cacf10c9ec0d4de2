-- A block denies a caller who exceeded a limit until a time. It has a key of its own, so that lifting it leaves the
-- count as it is, and it is loaded and saved like a count.
--
-- Of a limit whose blocks grow, the state also has the number of blocks in a row, and outlives the block by the longest
-- of them: a breach until then is a repeated one.
local block = {}

local layout, layout_length, tag = '>Bd', 9, string.byte('b')
local growing_layout, growing_length, growing_tag = '>Bdd', 17, string.byte('B')

block.whole = true

function block.load(value)
  local length = value and #value
  local wanted = length == layout_length and tag or length == growing_length and growing_tag
  return wanted and string.byte(value) == wanted and value or nil
end

function block.state(until_ms)
  return struct.pack(layout, tag, until_ms)
end

-- Returns how long the block stands; 0 for none. A block that would stand longer than the limit's blocks do is void: a
-- clock ahead of this one set it, or the limit's block was shortened.
function block.left_ms(state, block_ms, now_ms)
  if not state then
    return 0
  end
  local _, until_ms = struct.unpack(layout, state)
  local left_ms = until_ms - now_ms
  return left_ms > 0 and left_ms <= block_ms + clock.step_back_ms_max and left_ms or 0
end

-- Returns how many blocks in a row there were; 0 for none, or once they are forgotten.
local function count_of(state, longest_ms, now_ms)
  if not state or string.byte(state) ~= growing_tag then
    return 0
  end
  local _, until_ms, count = struct.unpack(growing_layout, state)
  local over_ms = now_ms - until_ms
  return over_ms < longest_ms and -over_ms <= longest_ms + clock.step_back_ms_max and count or 0
end

-- Returns the length of the next block, its state and the expiry of that. `lengths` are those of the first block, the
-- second and so on, the last for all after it; nil if all are `longest_ms`.
function block.next(state, lengths, longest_ms, now_ms)
  if not lengths then
    local until_ms = now_ms + longest_ms
    return longest_ms, block.state(until_ms), until_ms + clock.step_back_ms_max
  end
  local count = math.min(count_of(state, longest_ms, now_ms) + 1, #lengths)
  local until_ms = now_ms + lengths[count]
  local next_state = struct.pack(growing_layout, growing_tag, until_ms, count)
  return lengths[count], next_state, until_ms + longest_ms + clock.step_back_ms_max
end

block.save = save.value
