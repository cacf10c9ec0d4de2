-- A counter a window, as most introductions have it: charge, give the first an expiry, then compare.
-- KEYS[1] the counter; ARGV: size, window in milliseconds, cost. Returns 1 if admitted.
local count = redis.call('INCRBY', KEYS[1], ARGV[3])
if count == tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return count <= tonumber(ARGV[1]) and 1 or 0
