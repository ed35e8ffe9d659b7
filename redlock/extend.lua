-- Gives each key that holds its token at least a new time to live.
-- KEYS[i]  a lock key, ARGV[i] the token of its lease, ARGV[n+i] the time in
-- milliseconds, where n is how many locks there are.
-- KEYS[n+i]  its counter, and ARGV[2n+1] the counters' time to live, for locks with
-- fences. What is no number there is not a counter, and is left alone.
-- Returns n if all hold, else for each key 1 if it holds its token, 0 if
-- there is none (or one of another type), or what it holds instead.
-- It never creates a key and never shortens one's time, unless somebody has taken
-- its end away; running it twice is the same as once.
local largest = 9007199254740991 -- the last integer that a double tells from the next
local n = math.floor(#ARGV / 2)
local held = redis.call('MGET', unpack(KEYS))
local ours = 0
local answer = {}
for i = 1, n do
  local key = KEYS[i]
  if held[i] == ARGV[i] then
    ours = ours + 1
    answer[i] = 1
    if redis.call('PTTL', key) < tonumber(ARGV[n + i]) then
      redis.call('PEXPIRE', key, ARGV[n + i])
    end
    local count = held[n + i]
    if count and string.find(count, '^%d+$') and tonumber(count) <= largest then
      redis.call('PEXPIRE', KEYS[n + i], ARGV[2 * n + 1])
    end
  else
    answer[i] = held[i] or 0
  end
end
if ours == n then
  return n
end
return answer
