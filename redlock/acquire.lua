-- Sets each lock that nobody holds, and raises its counter with it.
-- KEYS[2i-1]  a lock key, KEYS[2i] its counter.
-- ARGV[4i-3]  the token, ARGV[4i-2] the lock's time to live, ARGV[4i-1] the fence
-- proposed, ARGV[4i] the counter's time to live; times are in milliseconds, the
-- fence in microseconds since 1970.
-- Returns for each lock its counter if it is the token's (again: then nothing is
-- changed), what it holds instead, 0 if that is no string, or -1 if the counter
-- is no number; the lock is not set then.
-- A counter rises by one at least, to what was proposed if that is more, but not
-- to more than a second ahead of this node's clock.
local ahead = 1000000
local largest = 9007199254740991 -- the last integer that a double tells from the next
local time = redis.call('TIME')
local limit = time[1] * 1000000 + time[2] + ahead
local held = redis.call('MGET', unpack(KEYS))
local answer = {}
for i = 1, #KEYS, 2 do
  local lock, counter = KEYS[i], KEYS[i + 1]
  local token, ttl, proposed, cttl = unpack(ARGV, 2 * i - 1, 2 * i + 2)
  local count = held[i + 1]
  if not count then
    count = redis.call('EXISTS', counter) == 0 and 0
  elseif string.find(count, '^%d+$') and tonumber(count) < largest then
    count = tonumber(count)
  else
    count = false
  end
  local n = (i + 1) / 2
  if held[i] and held[i] ~= token then
    answer[n] = held[i]
  elseif not count or held[i] and count == 0 then
    answer[n] = -1
  elseif held[i] then
    answer[n] = count
  elseif redis.call('SET', lock, token, 'NX', 'PX', ttl) then
    count = math.max(count + 1, math.min(tonumber(proposed), limit))
    redis.call('SET', counter, string.format('%.0f', count), 'PX', cttl)
    answer[n] = count
  else
    answer[n] = 0
  end
end
return answer
