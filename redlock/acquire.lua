-- Sets each lock that nobody holds, and raises its counter with it.
-- KEYS[2i-1]  a lock key, KEYS[2i] its counter.
-- ARGV[3i-2]  the token, ARGV[3i-1] the lock's time to live, ARGV[3i] the fence
-- proposed, and the last ARGV the counters' time to live; times are in
-- milliseconds, fences in microseconds since 1970.
-- Returns for each lock its counter if it is the token's (again: then nothing is
-- changed), what it holds instead, 0 if that is no string, or -1 if the counter
-- is no number; the lock is not set then.
-- A counter rises by one at least, to what was proposed if that is more, but not
-- to more than a second ahead of this node's clock.
local ahead = 1000000
local largest = 9007199254740991 -- the last integer that a double tells from the next
local call, find, number = redis.call, string.find, tonumber
local time = call('TIME')
local limit = time[1] * 1000000 + time[2] + ahead
local held = call('MGET', unpack(KEYS))
local outlives = ARGV[#ARGV]
local answer = {}
for n = 1, #KEYS / 2 do
  local lock, counter = KEYS[2 * n - 1], KEYS[2 * n]
  local token, holder, text = ARGV[3 * n - 2], held[2 * n - 1], held[2 * n]
  local count = false
  if not text then
    count = call('EXISTS', counter) == 0 and 0
  elseif find(text, '^%d+$') then
    count = number(text)
    count = count < largest and count
  end
  if holder and holder ~= token then
    answer[n] = holder
  elseif not count or holder and count == 0 then
    answer[n] = -1
  elseif holder then
    answer[n] = count
  elseif call('SET', lock, token, 'NX', 'PX', ARGV[3 * n - 1]) then
    local fence, digits = number(ARGV[3 * n]), ARGV[3 * n]
    if fence <= count or fence > limit then
      fence = math.max(count + 1, math.min(fence, limit))
      digits = string.format('%.0f', fence)
    end
    call('SET', counter, digits, 'PX', outlives)
    answer[n] = fence
  else
    answer[n] = 0
  end
end
return answer
