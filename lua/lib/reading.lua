-- How the keys of a call are read: those whose values are read whole with one command, others by their algorithm.
local reading = {}

-- keeper_at: by position in keys, what keeps its state there; keys without one are not read. limits_of and cost_maxes: of those
-- that are not read whole. Returns by position what is stored, and whether it cannot be read: of a key that holds something
-- else or is damaged only the requests fail.
function reading.states(keys, keeper_at, limits_of, cost_maxes, all_whole, now_us)
  local states, is_unreadable = {}, {}
  if not next(keeper_at) then
    return states, is_unreadable
  elseif all_whole then
    return redis.call('MGET', unpack(keys)), is_unreadable
  end
  local names, positions = {}, {}
  for position = 1, #keys do
    local keeper = keeper_at[position]
    if keeper and keeper.whole then
      names[#names + 1], positions[#positions + 1] = keys[position], position
    elseif keeper then
      local arguments, cost_max = limits_of[position].arguments, cost_maxes[position]
      local is_read, state = pcall(keeper.load, false, keys[position], arguments, cost_max, now_us)
      states[position], is_unreadable[position] = is_read and state, not is_read
    end
  end
  if #names > 0 then
    for at, value in ipairs(redis.call('MGET', unpack(names))) do
      states[positions[at]] = value
    end
  end
  return states, is_unreadable
end
