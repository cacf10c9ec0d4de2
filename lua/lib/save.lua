-- Saves a state that is one string, always with an expiry.
local save = {}

-- Without expires_ms the key was read in this call and has its expiry, which is cheaper to keep than to set.
function save.value(key, value, expires_ms, server_ahead_ms)
  if expires_ms then
    redis.call('SET', key, value, 'PXAT', expires_ms + server_ahead_ms)
  else
    redis.call('SET', key, value, 'KEEPTTL')
  end
end
