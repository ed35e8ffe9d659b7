-- Makes a record SUCCESS.
-- KEYS[1] is the record. ARGV: owner, retention in ms, response, and for a record
-- that has gone: fingerprint, attempt, and when it began in ms or '' for now.
-- Returns 0 if it is another's, 1 if the response is stored, 2 if the record had
-- gone and is back, 3 if this owner had completed it before.
local st, own = unpack(redis.call('HMGET', KEYS[1], 'st', 'own'))
if not st and redis.call('EXISTS', KEYS[1]) == 0 then
  local began = ARGV[6]
  if began == '' then
    local time = redis.call('TIME')
    began = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  end
  redis.call('HSET', KEYS[1], 'fp', ARGV[4], 'st', 'S', 'own', ARGV[1], 'att', ARGV[5], 'sa', began, 'res', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 2
elseif own ~= ARGV[1] then
  return 0
elseif st == 'S' then
  return 3
end
redis.call('HSET', KEYS[1], 'st', 'S', 'res', ARGV[3])
redis.call('HDEL', KEYS[1], 'lu', 'tk', 'why')
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
