-- State codecs: each knows how the state under one kind of key is loaded and saved. A codec is made when a call first
-- needs it: making all of them in every call would cost more than deciding does.
-- @include save.lua
local state_codecs = {}

-- One function, for a closure for each would cost every call.
local function make(name)
  if name == 'fixed_window' then
    -- @include ../algorithms/fixed-window.lua
    return fixed_window
  elseif name == 'sliding_window' then
    -- @include ../algorithms/sliding-window.lua
    return sliding_window
  elseif name == 'sliding_log' then
    -- @include ../algorithms/sliding-log.lua
    return sliding_log
  elseif name == 'token_bucket' then
    -- @include ../algorithms/token-bucket.lua
    return token_bucket
  elseif name == 'concurrency' then
    -- @include ../algorithms/concurrency.lua
    return concurrency
  elseif name == 'ends' then
    -- @include ends.lua
    return ends
  elseif name == 'block' then
    -- @include block.lua
    return block
  elseif name == 'idempotency' then
    -- @include idempotency.lua
    return idempotency
  elseif name == 'reservation' then
    -- @include reservation.lua
    return reservation
  elseif name == 'tally' then
    -- @include tally.lua
    return tally
  end
end

local algorithms = { fixed_window = true, sliding_window = true, sliding_log = true, token_bucket = true, concurrency = true }

-- Returns the codec of this name, or nil.
function state_codecs.of(name)
  local codec = state_codecs[name]
  if not codec then
    codec = make(name)
    state_codecs[name] = codec
  end
  return codec
end

-- Returns the algorithm of this name, or nil.
function state_codecs.algorithm(name)
  return algorithms[name] and state_codecs.of(name)
end
