-- Amounts that end by themselves: how many of them end at which second. A tag, then pairs of a second and an amount.
-- Beside them amounts that were refused and will be given back nevertheless: below 0 in the pairs, and in the list and
-- the amounts by their end below 0.
local ends = {}

-- The longest time to live of an amount; a later end was written before a clock was set back.
ends.longest_s = 100000

-- Ends are rounded up by at most an eighth of the time, so that there are at most 17 pairs for one time, and 250 for
-- all.
function ends.after(kept_ms, now_ms)
  local width_s = 1
  while width_s * 16000 <= kept_ms do
    width_s = width_s * 2
  end
  return math.ceil((now_ms + kept_ms) / (width_s * 1000)) * width_s
end

-- layout: of an amount, for struct. Returns what has not ended: the ends in the order of the state, the amounts by end,
-- and the sum of those that were not refused.
function ends.read(state, layout, now_s)
  local list, amounts, total = {}, {}, 0
  local at, end_s, amount = 2, 0, 0
  while state and at <= #state do
    end_s, amount, at = struct.unpack('>I4' .. layout, state, at)
    if end_s > now_s and end_s - now_s <= ends.longest_s then
      if amount > 0 then
        list[#list + 1], amounts[end_s], total = end_s, amount, total + amount
      elseif amount < 0 then
        list[#list + 1], amounts[-end_s] = -end_s, -amount
      end
    end
  end
  return list, amounts, total
end

-- Adds to what `read` returned.
function ends.add(list, amounts, end_s, amount)
  if not amounts[end_s] then
    list[#list + 1] = end_s
  end
  amounts[end_s] = (amounts[end_s] or 0) + amount
end

-- Returns the state, and the last second at which an amount ends.
function ends.write(tag, layout, list, amounts)
  local parts, last_s = {}, 0
  for at, end_s in ipairs(list) do
    local amount = amounts[end_s]
    parts[at] = struct.pack('>I4' .. layout, math.abs(end_s), end_s < 0 and -amount or amount)
    last_s = math.max(last_s, math.abs(end_s))
  end
  return string.char(tag) .. table.concat(parts), last_s
end

-- Returns the first and the last second at which an amount ends, nil for none; and where a refused one is.
function ends.span(list)
  local first_s, last_s, refused
  for _, end_s in ipairs(list) do
    if end_s < 0 then
      refused = refused or end_s
    else
      first_s, last_s = math.min(first_s or end_s, end_s), math.max(last_s or end_s, end_s)
    end
  end
  return first_s, last_s, refused
end
