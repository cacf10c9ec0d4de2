-- Notes that a process lives, forgets those that were silent for long, and counts the rest. By Redis's clock, because the
-- processes' own may differ.
--
-- KEYS[1]   a sorted set of process ids, each with the milliseconds of its last call
-- ARGV[1]   the id of the calling process
-- ARGV[2]   after so many milliseconds of silence a process counts as gone
--
-- Reply: how many processes live, the calling one included.
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local silence_ms = tonumber(ARGV[2])

redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms - silence_ms)
-- Noted before the clock was set back.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now_ms + silence_ms, '+inf')
redis.call('PEXPIRE', KEYS[1], silence_ms)
return redis.call('ZCARD', KEYS[1])
