-- Raises the counter of each lock that still holds its token to a given fence.
-- KEYS[2i-1]  a lock key, KEYS[2i] its counter.
-- ARGV[3i-2]  the token, ARGV[3i-1] the fence, ARGV[3i] the counter's time to live
-- in milliseconds.
-- Returns for each lock 1 if its counter is the fence now and the lock the
-- token's, what the lock holds instead, 0 if there is none or the counter is above
-- the fence, or -1 if the counter is no number; nothing is changed then.
-- Running it twice is the same as once.
local held = redis.call('MGET', unpack(KEYS))
local answer = {}
for i = 1, #KEYS, 2 do
  local n = (i + 1) / 2
  local token, fence, cttl = unpack(ARGV, 3 * n - 2, 3 * n)
  local count = held[i + 1]
  if held[i] ~= token then
    answer[n] = held[i] or 0
  elseif not count or not string.find(count, '^%d+$') then
    answer[n] = -1
  elseif tonumber(count) > tonumber(fence) then
    answer[n] = 0
  else
    redis.call('SET', KEYS[i + 1], fence, 'PX', cttl)
    answer[n] = 1
  end
end
return answer
