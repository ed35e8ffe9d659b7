-- Gives each key that holds its token at least a new time to live.
-- KEYS[i]  a lock key, ARGV[i] the token of its lease, ARGV[#KEYS+i] the time in
-- milliseconds.
-- Returns #KEYS if all hold, else for each key 1 if it holds its token, 0 if
-- there is none (or one of another type), or what it holds instead.
-- It never creates a key and never shortens one's time, unless somebody has taken
-- its end away; running it twice is the same as once.
local held = redis.call('MGET', unpack(KEYS))
local ours = 0
local answer = {}
for i, key in ipairs(KEYS) do
  if held[i] == ARGV[i] then
    ours = ours + 1
    answer[i] = 1
    local ttl = tonumber(ARGV[#KEYS + i])
    if redis.call('PTTL', key) < ttl then
      redis.call('PEXPIRE', key, ARGV[#KEYS + i])
    end
  else
    answer[i] = held[i] or 0
  end
end
if ours == #KEYS then
  return ours
end
return answer
