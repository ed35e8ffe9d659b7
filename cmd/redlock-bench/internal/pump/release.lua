-- Releases a key that is still its holder's.
-- KEYS[1]: the key. ARGV[1]: the holder's token.
-- Answers 1 if it was deleted, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
	return redis.call('DEL', KEYS[1])
end
return 0
