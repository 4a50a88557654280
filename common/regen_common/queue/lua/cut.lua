-- Decides a batch: the records after `expected` up to `last` belong to one object, for ever.
--   args: expected (stream id of the last cut), last, count, digest (sha1 of 'id:index:round'
--         of each, joined by blanks), name (the object's), codec, to (destination), bytes
--   keys: cut, intents, ledger, results
--   returns {'ok'} | {'stale', cut} | {'changed'}
-- Invariant: a record belongs to one intent; an intent never changes; what it covers is what the
-- sink read (Redis may have lost its last writes in between).
if C('HEXISTS', P .. ':intents', A.name) == 1 then return { 'ok' } end
local cut = C('GET', P .. ':cut') or '0-0'
if cut ~= A.expected then return { 'stale', cut } end
local seen = {}
for _, entry in ipairs(C('XRANGE', P .. ':results', '(' .. A.expected, A.last)) do
  seen[#seen + 1] = entry[1] .. ':' .. entry[2][2] .. ':' .. entry[2][4]
end
if #seen ~= A.count or redis.sha1hex(table.concat(seen, ' ')) ~= A.digest then
  return { 'changed' }
end
C('SET', P .. ':cut', A.last)
C('HSET', P .. ':intents', A.name, cjson.encode({ first = A.expected, last = A.last,
  count = A.count, codec = A.codec, to = A.to, bytes = A.bytes, at = now(), epoch = epoch }))
return { 'ok' }
