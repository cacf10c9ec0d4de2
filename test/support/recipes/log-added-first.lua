-- A log in a sorted set of unique members, as a MULTI of four commands has it: add, then count. KEYS[1] the log; ARGV:
-- size, window in milliseconds, the time in milliseconds, a unique member. Returns 1 if admitted.
local now = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[1]) and 1 or 0
