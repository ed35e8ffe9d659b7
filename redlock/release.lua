-- Deletes each key that still holds its token.
-- KEYS[i]  a lock key, ARGV[i] the token that its lease was given.
-- Returns #KEYS if all were deleted, else for each key 1 if it was deleted, 0 if
-- there is none (or one of another type), or what it holds instead.
-- Running it twice deletes nothing more.
local held = redis.call('MGET', unpack(KEYS))
local n = 0
for i, token in ipairs(ARGV) do
  if held[i] == token then
    n = n + 1
  end
end
if n == #KEYS then -- as nearly always
  redis.call('DEL', unpack(KEYS))
  return n
end
local ours = {}
local answer = {}
for i, token in ipairs(ARGV) do
  if held[i] == token then
    ours[#ours + 1] = KEYS[i]
    answer[i] = 1
  else
    answer[i] = held[i] or 0
  end
end
if n > 0 then
  redis.call('DEL', unpack(ours))
end
return answer
