-- A block denies a caller who exceeded a limit until a time. It has a key of its own, so that lifting it leaves the
-- count as it is, and it is loaded and saved like a count.
local block = {}

local layout, layout_length, tag = '>Bd', 9, string.byte('b')

block.whole = true

function block.load(value)
  return value and #value == layout_length and string.byte(value) == tag and value or nil
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

block.save = save.value
