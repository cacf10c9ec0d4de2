-- What keeps a state under a key: the algorithms, blocks, and markers of idempotency keys and of decisions to be settled, and how many markers there are. Each is made when a call first needs
-- it: making all of them every time would cost more than deciding does.
-- @include stored.lua
local keepers = {}

local makers = {
  fixed_window = function()
    -- @include ../algorithms/fixed-window.lua
    return fixed_window
  end,
  sliding_window = function()
    -- @include ../algorithms/sliding-window.lua
    return sliding_window
  end,
  sliding_log = function()
    -- @include ../algorithms/sliding-log.lua
    return sliding_log
  end,
  token_bucket = function()
    -- @include ../algorithms/token-bucket.lua
    return token_bucket
  end,
  block = function()
    -- @include block.lua
    return block
  end,
  once = function()
    -- @include once.lua
    return once
  end,
  settling = function()
    -- @include settling.lua
    return settling
  end,
  tally = function()
    -- @include tally.lua
    return tally
  end,
}

local algorithms = { fixed_window = true, sliding_window = true, sliding_log = true, token_bucket = true }

-- The one of this name, or nil.
function keepers.of(name)
  local keeper = keepers[name]
  if not keeper and makers[name] then
    keeper = makers[name]()
    keepers[name] = keeper
  end
  return keeper
end

-- The same, but only for what counts.
function keepers.algorithm(name)
  return algorithms[name] and keepers.of(name)
end
