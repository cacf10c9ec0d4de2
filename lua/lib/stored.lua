-- How a state that is one string is written: with its expiry, always.
local stored = {}

-- Without expires_ms the key was read in this call and has its expiry, which is cheaper kept than set.
function stored.save(key, value, expires_ms, server_ahead_ms)
  if expires_ms then
    redis.call('SET', key, value, 'PXAT', expires_ms + server_ahead_ms)
  else
    redis.call('SET', key, value, 'KEEPTTL')
  end
end
