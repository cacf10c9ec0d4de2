-- The same, better: compare, then charge. Right for one limit.
-- KEYS[1] the counter; ARGV: size, window in milliseconds, cost. Returns 1 if admitted.
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count + tonumber(ARGV[3]) > tonumber(ARGV[1]) then
  return 0
end
redis.call('INCRBY', KEYS[1], ARGV[3])
if count == 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
