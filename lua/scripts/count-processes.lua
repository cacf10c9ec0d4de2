-- Notes the heartbeat of a process, drops processes that were silent for too long, and counts the rest. Redis's clock
-- counts, because the clocks of the processes may differ.
--
--   KEYS[1]   processes: a sorted set of process ids, each with the milliseconds of its last heartbeat
--   ARGV[1]   id: the calling process
--   ARGV[2]   silence_ms: after this long without a heartbeat a process counts as dead
--
-- Reply: how many processes live, the calling one included.
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local silence_ms = tonumber(ARGV[2])

redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms - silence_ms)
-- These were noted before the clock was set back.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now_ms + silence_ms, '+inf')
redis.call('PEXPIRE', KEYS[1], silence_ms)
return redis.call('ZCARD', KEYS[1])
