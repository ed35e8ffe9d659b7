-- Releases those of some keys that are still their holders'.
-- KEYS: the keys. ARGV: as many tokens.
-- Answers how many were deleted.
local held = {}
for i, token in ipairs(redis.call('MGET', unpack(KEYS))) do
	if token == ARGV[i] then
		held[#held + 1] = KEYS[i]
	end
end
if #held == 0 then
	return 0
end
return redis.call('DEL', unpack(held))
