-- Makes a record UNKNOWN; its owner lets go of it, and stays in it only so that
-- it is known again when it says so twice.
-- KEYS[1] is the record. ARGV: owner, reason, pause in ms, retention in ms.
-- Returns 1, or 0 if it is another's or SUCCESS.
local st, own = unpack(redis.call('HMGET', KEYS[1], 'st', 'own'))
if not st or st == 'S' or own ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'st', 'U', 'why', ARGV[2], 'lu', string.format('%.0f', now + ARGV[3]))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
