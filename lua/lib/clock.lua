-- The one clock reading of a call. Redis's clock is the clock; a test passes its own.
local clock = {}

-- An NTP correction is smaller than this; a larger step back is a clock that was set, and what was counted ahead of it
-- is void.
clock.step_back_ms_max = 2000

-- text: microseconds since the epoch, or empty for the server's clock.
-- Returns microseconds, and the milliseconds by which the server's clock is ahead of them (0 but in tests): expiries
-- are always in the server's time. Returns nil when the text is no time.
function clock.read(text)
  local time = redis.call('TIME')
  local server_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  if text == '' then
    return server_us, 0
  end
  local now_us = tonumber(text)
  if not integers.is_count(now_us) then
    return nil
  end
  return now_us, math.floor(server_us / 1000) - math.floor(now_us / 1000)
end
