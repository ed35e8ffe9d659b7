-- Gives up a record under which its owner has done nothing.
-- KEYS[1] is the record. ARGV: owner, and '1' if the attempts before are known to
-- have done nothing either.
-- Removes it, unless it was taken over and that is not known: what the earlier
-- attempts did is then still open, and it becomes UNKNOWN without a pause.
-- Returns 1, also if it has gone or had become so, or 0 if it is another's or SUCCESS.
local st, own, tk = unpack(redis.call('HMGET', KEYS[1], 'st', 'own', 'tk'))
if not st then
  return 1
elseif st == 'S' or own ~= ARGV[1] then
  return 0
elseif st == 'U' then
  return 1
elseif not tk or ARGV[2] == '1' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'st', 'U', 'lu', '0')
end
return 1
