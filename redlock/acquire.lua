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
local call = redis.call
local time = call('TIME')
local limit = time[1] * 1000000 + time[2] + ahead
local held = call('MGET', unpack(KEYS))
local answer = {}
for n = 1, #KEYS / 2 do
  local lock, counter = KEYS[2 * n - 1], KEYS[2 * n]
  local token, holder, text = ARGV[4 * n - 3], held[2 * n - 1], held[2 * n]
  local count = false
  if not text then
    count = call('EXISTS', counter) == 0 and 0
  elseif string.find(text, '^%d+$') and tonumber(text) < largest then
    count = tonumber(text)
  end
  if holder and holder ~= token then
    answer[n] = holder
  elseif not count or holder and count == 0 then
    answer[n] = -1
  elseif holder then
    answer[n] = count
  elseif call('SET', lock, token, 'NX', 'PX', ARGV[4 * n - 2]) then
    count = math.max(count + 1, math.min(tonumber(ARGV[4 * n - 1]), limit))
    call('SET', counter, string.format('%.0f', count), 'PX', ARGV[4 * n])
    answer[n] = count
  else
    answer[n] = 0
  end
end
return answer
