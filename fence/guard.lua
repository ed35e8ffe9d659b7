-- Lets the script that is appended to it run only for a fence that is not stale.
-- KEYS[1] remembers the largest fence that has come, ARGV[1] is the fence that
-- comes now, in decimal digits and below 2^53. The other KEYS, which must be in
-- the same hash slot, and ARGV are the appended script's.
-- Returns the error "STALEFENCE <largest>" if a larger fence has come before, the
-- error "NOFENCE <why>" if KEYS[1] or ARGV[1] is no fence, and else what the
-- appended script returns.
-- An equal fence is the same lease again: running it twice is the same as once.
do
  -- Only digits: tonumber would also take 'nan', than which nothing is larger.
  -- Numbers are doubles here, exact below 2^53.
  local function fence(text)
    return text and string.find(text, '^%d+$') and tonumber(text) < 9007199254740992 and tonumber(text)
  end
  local comes = fence(ARGV[1])
  local last = fence(redis.call('GET', KEYS[1]) or '0')
  if not comes or comes == 0 then
    return redis.error_reply('NOFENCE the first argument is none')
  elseif not last then
    return redis.error_reply('NOFENCE the first key holds something else')
  elseif comes < last then
    return redis.error_reply('STALEFENCE ' .. string.format('%.0f', last))
  end
  -- The text as it came: as a number, it might be written as 1.8e+15.
  redis.call('SET', KEYS[1], ARGV[1])
end
