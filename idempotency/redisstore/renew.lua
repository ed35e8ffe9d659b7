-- Prolongs a lease.
-- KEYS[1] is the record. ARGV: owner, lease in ms, retention in ms.
-- Returns 1, or 0 if it is not in progress under that owner.
local st, own = unpack(redis.call('HMGET', KEYS[1], 'st', 'own'))
if st ~= 'P' or own ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'lu', string.format('%.0f', now + ARGV[2]))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
