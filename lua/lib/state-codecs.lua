-- State codecs: each knows how the state under one kind of key is loaded and saved. A codec is made when a call first
-- needs it: making all of them in every call would cost more than deciding does.
-- @include save.lua
local state_codecs = {}

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
  concurrency = function()
    -- @include ../algorithms/concurrency.lua
    return concurrency
  end,
  ends = function()
    -- @include ends.lua
    return ends
  end,
  block = function()
    -- @include block.lua
    return block
  end,
  idempotency = function()
    -- @include idempotency.lua
    return idempotency
  end,
  reservation = function()
    -- @include reservation.lua
    return reservation
  end,
  tally = function()
    -- @include tally.lua
    return tally
  end,
}

local algorithms = { fixed_window = true, sliding_window = true, sliding_log = true, token_bucket = true, concurrency = true }

-- Returns the codec of this name, or nil.
function state_codecs.of(name)
  local codec = state_codecs[name]
  if not codec and makers[name] then
    codec = makers[name]()
    state_codecs[name] = codec
  end
  return codec
end

-- Returns the algorithm of this name, or nil.
function state_codecs.algorithm(name)
  return algorithms[name] and state_codecs.of(name)
end
