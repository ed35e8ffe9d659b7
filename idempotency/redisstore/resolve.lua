-- Enters a decision about a record that is UNKNOWN.
-- KEYS[1] is the record. ARGV: its attempt, '1' if it happened, and then the
-- response and the retention in ms.
-- Returns 1, or 0 if it is not UNKNOWN with that attempt.
local st, att = unpack(redis.call('HMGET', KEYS[1], 'st', 'att'))
if st ~= 'U' or att ~= ARGV[1] then
  return 0
elseif ARGV[2] ~= '1' then
  redis.call('DEL', KEYS[1])
  return 1
end
redis.call('HSET', KEYS[1], 'st', 'S', 'res', ARGV[3])
redis.call('HDEL', KEYS[1], 'own', 'lu', 'tk', 'why')
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
