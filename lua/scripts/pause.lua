-- Sets the block of one limit for one subject until a time. A block that ends later stays: a block is only ever
-- lengthened.
--
--   KEYS[1]   block
--   ARGV[1]   time: microseconds since the epoch, or empty for the server's clock
--   ARGV[2]   pause_ms: from that time; 1 ms to 31 days
--
-- Reply: the milliseconds until the block ends, as a text.
-- Errors: a malformed call is refused whole with PAUSEARGS.
-- @include ../lib/integers.lua
-- @include ../lib/clock.lua
-- @include ../lib/state-codecs.lua

-- The longest block; also checked by the caller.
local pause_ms_max = 2678400000

local now_us, server_ahead_ms = clock.read(ARGV[1])
local pause_ms = tonumber(ARGV[2])
if not now_us or not integers.is_count(pause_ms) or pause_ms < 1 or pause_ms > pause_ms_max or #KEYS ~= 1 or ARGV[3] then
  return redis.error_reply('PAUSEARGS wanted one key, the time or nothing, and up to ' .. pause_ms_max .. ' milliseconds')
end
local now_ms = math.floor(now_us / 1000)

local block = state_codecs.of('block')
local left_ms = block.left_ms(block.load(redis.call('GET', KEYS[1])), pause_ms_max, now_ms)
if left_ms >= pause_ms then
  return string.format('%.0f', left_ms)
end
local until_ms = now_ms + pause_ms
block.save(KEYS[1], block.state(until_ms), until_ms + clock.step_back_ms_max, server_ahead_ms)
return string.format('%.0f', pause_ms)
