-- Lua's numbers are doubles: exact for integers up to 2^53 - 1, and nothing else may enter a count.
local integers = {}

-- True for 0, 1, … 2^53 - 1; false for anything else of any type, NaN and infinities included.
function integers.is_count(value)
  return type(value) == 'number' and value >= 0 and value <= 9007199254740991 and value % 1 == 0
end
