-- Closes an intent whose object is at the destination.
--   args: name, size (bytes of the object), labels (all, in mask order)
--   keys: intents, results, bits:done, bits:LABEL, redo, stats, ledger
--   returns {'ok', records} | {'gone'} (it was committed) | {'corrupt', found, expected}
-- Invariant: removes exactly the intent's records from the stream (trimming by id would destroy an
-- older open intent's); counters follow what SETBIT returned, so a repetition counts nothing twice.
local text = C('HGET', P .. ':intents', A.name)
if not text then return { 'gone' } end
local intent = cjson.decode(text)
local entries = C('XRANGE', P .. ':results', '(' .. intent.first, intent.last)
if #entries ~= intent.count then return { 'corrupt', #entries, intent.count } end

local ids, deltas, bytes, previous = {}, {}, 0, 0
for _, entry in ipairs(entries) do
  local f = entry[2] -- i, r, e, c, l, b: names at odd places, values behind them
  local index, round, category, mask = f[2], tonumber(f[4]), f[8], tonumber(f[10])
  ids[#ids + 1] = entry[1]
  deltas[#deltas + 1] = string.format('%d', tonumber(index) - previous)
  previous = tonumber(index)
  bytes = bytes + #f[12]
  if C('SETBIT', P .. ':bits:done', index, 1) == 0 then count('done:' .. category, 1) end
  if mask ~= 0 or round ~= 0 then -- a first answer without labels has no bit to clear
    for place, label in ipairs(A.labels) do
      local on = math.floor(mask / 2 ^ (place - 1)) % 2
      local was = C('SETBIT', P .. ':bits:' .. label, index, on)
      count('label:' .. label .. ':' .. category, on - was)
    end
  end
  C('SREM', P .. ':redo', A.run .. '-' .. index)
end
C('XDEL', P .. ':results', unpack(ids))
count('backlog', -bytes)
count('batches', 1)
count('batch_bytes', A.size)
C('HSET', P .. ':ledger', A.name, cjson.encode({ count = #ids, bytes = A.size, at = now(),
  to = intent.to, indices = table.concat(deltas, ' ') }))
C('HDEL', P .. ':intents', A.name)
return { 'ok', #ids }
