-- Loads the states of a call: values that are read whole with one command, the others by their algorithm.
local load = {}

-- codec_at: by position in keys; a key without a codec is not read. limits_of and cost_maxes: for keys that are not
-- read whole. Returns, by position, the stored state and whether it cannot be read. A key of another type or with a
-- damaged value fails only the requests that name it.
function load.states(keys, codec_at, limits_of, cost_maxes, all_whole, now_us)
  local states, is_unreadable = {}, {}
  if not next(codec_at) then
    return states, is_unreadable
  elseif all_whole then
    return redis.call('MGET', unpack(keys)), is_unreadable
  end
  local names, positions = {}, {}
  for position = 1, #keys do
    local codec = codec_at[position]
    if codec and codec.whole then
      names[#names + 1], positions[#positions + 1] = keys[position], position
    elseif codec then
      local arguments, cost_max = limits_of[position].arguments, cost_maxes[position]
      local is_read, state = pcall(codec.load, false, keys[position], arguments, cost_max, now_us)
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
