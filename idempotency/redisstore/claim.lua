-- Claims a record, as its first or as its next owner.
-- KEYS[1] is the record, a hash that expires; its times are in ms of this server:
--   fp fingerprint    st state: P in progress, S success, U unknown
--   own owner's token    lu until when it or the pause lasts    att attempt
--   sa when it began    tk the state it was taken over in, if it was
--   by holder    why reason    res response
-- ARGV: owner, lease in ms, retention in ms, holder, fingerprint and any alternates.
-- Returns a code, its name, and for all but 3: st, fp, att, by, why, sa, lu, now,
-- the ms left until it expires, and res. The codes:
--   0 CREATED    1 IN_PROGRESS    2 SUCCESS    3 FINGERPRINT_MISMATCH
--   4 TAKEOVER, with st as it was before    5 UNKNOWN
-- An owner that claims again gets 0 or 4 again, and its lease anew. Whoever takes
-- over owes the earlier attempts an answer: tk stays until it is given.
local owner, lease, retention = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local r = {}
local flat = redis.call('HGETALL', KEYS[1])
local life = redis.call('PTTL', KEYS[1])
for i = 1, #flat, 2 do
  r[flat[i]] = flat[i + 1]
end

local function reply(code, name, state)
  return {code, name, state, r.fp, tonumber(r.att), r.by or '', r.why or '', tonumber(r.sa), tonumber(r.lu or 0),
    now, life, r.res or ''}
end

local function own(...)
  r.lu = string.format('%.0f', now + lease)
  redis.call('HSET', KEYS[1], 'own', owner, 'lu', r.lu, ...)
  if life < retention then
    life = retention
    redis.call('PEXPIRE', KEYS[1], life)
  end
end

if #flat == 0 then
  r.fp, r.att, r.by, r.sa = ARGV[5], '1', ARGV[4], string.format('%.0f', now)
  own('fp', r.fp, 'st', 'P', 'att', r.att, 'sa', r.sa, 'by', r.by)
  return reply(0, 'CREATED', 'P')
end

local known = r.st == 'P' or r.st == 'S' or r.st == 'U'
if not (known and r.fp and tonumber(r.att) and tonumber(r.sa) and tonumber(r.lu or r.st == 'S' and 0)) then
  return redis.error_reply('NORECORD the key holds something else')
end
local same = false
for i = 5, #ARGV do
  same = same or ARGV[i] == r.fp
end
if not same then
  return {3, 'FINGERPRINT_MISMATCH'}
elseif r.st == 'S' then
  return reply(2, 'SUCCESS', 'S')
elseif r.st == 'P' and r.own == owner then
  own()
elseif tonumber(r.lu) > now then
  if r.st == 'P' then
    return reply(1, 'IN_PROGRESS', 'P')
  end
  return reply(5, 'UNKNOWN', 'U')
else
  r.tk, r.att, r.by = r.st, string.format('%.0f', r.att + 1), ARGV[4]
  own('st', 'P', 'tk', r.tk, 'att', r.att, 'by', r.by)
end
if r.tk then
  return reply(4, 'TAKEOVER', r.tk)
end
return reply(0, 'CREATED', 'P')
