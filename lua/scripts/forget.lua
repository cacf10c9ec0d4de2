-- Removes counts and their blocks, and says what the counts held: a reset that is recorded, so that a count which is
-- restored later is not restored to what was forgotten.
--
--   KEYS[1…]  counts, each followed by the key of its block; at most 1,000, in one slot on a Cluster
--
-- Reply: how many of the keys were there, then for each count its value, nil for none and for a state that is not one
-- string.
--
-- Errors: a malformed call is refused whole with FORGETARGS.

local keys_max = 1000

if #KEYS % 2 ~= 0 or #KEYS > keys_max then
  return redis.error_reply('FORGETARGS wanted at most ' .. keys_max .. ' keys, of counts and their blocks in turn')
elseif #KEYS == 0 then
  return { 0 }
end
local reply = { 0 }
for at = 1, #KEYS, 2 do
  local value = redis.pcall('GET', KEYS[at])
  reply[#reply + 1] = type(value) == 'string' and value or false
end
reply[1] = redis.call('UNLINK', unpack(KEYS))
return reply
