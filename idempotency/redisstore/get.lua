-- Reads a record.
-- KEYS[1] is the record.
-- Returns st, fp, att, by, why, sa, lu, now, the ms left until it expires, and
-- res, as claim.lua does, or nothing if there is no record.
local st, fp, att, by, why, sa, lu, res = unpack(redis.call('HMGET', KEYS[1], 'st', 'fp', 'att', 'by', 'why', 'sa', 'lu', 'res'))
local known = st == 'P' or st == 'S' or st == 'U'
if not (known and fp and tonumber(att) and tonumber(sa) and tonumber(lu or st == 'S' and 0)) then
  return {}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {st, fp, tonumber(att), by or '', why or '', tonumber(sa), tonumber(lu or 0), now, redis.call('PTTL', KEYS[1]), res or ''}
