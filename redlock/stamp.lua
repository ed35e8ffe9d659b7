-- Raises the counter of each lock that still holds its token to a given fence.
-- KEYS[2i-1]  a lock key, KEYS[2i] its counter.
-- ARGV[2i-1]  the token, ARGV[2i] the fence, and the last ARGV the counters' time to
-- live in milliseconds.
-- Returns for each lock 1 if its counter is the fence now and the lock the
-- token's, what the lock holds instead, 0 if there is none or the counter is above
-- the fence, or -1 if the counter is no number; nothing is changed then.
-- Running it twice is the same as once.
local held = redis.call('MGET', unpack(KEYS))
local outlives = ARGV[#ARGV]
local answer = {}
for n = 1, #KEYS / 2 do
  local token, fence = ARGV[2 * n - 1], ARGV[2 * n]
  local holder, count = held[2 * n - 1], held[2 * n]
  if holder ~= token then
    answer[n] = holder or 0
  elseif not count or not string.find(count, '^%d+$') then
    answer[n] = -1
  elseif tonumber(count) > tonumber(fence) then
    answer[n] = 0
  else
    redis.call('SET', KEYS[2 * n], fence, 'PX', outlives)
    answer[n] = 1
  end
end
return answer
