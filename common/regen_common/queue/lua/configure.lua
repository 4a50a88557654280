-- Changes configuration keys, if nobody changed any since the caller read them.
--   args: expected (version), values {key: JSON text}, who
--   keys: config, window
--   returns {'ok', version} | {'stale', version}
-- Invariant: each change has its line in the history, and the version moves by one.
local HISTORY_MAX = 1000
local version = tonumber(config('version') or '0')
if version ~= A.expected then return { 'stale', version } end
local history = cjson.decode(config('history') or '[]')
for key, value in pairs(A.values) do
  local line = { key = key, value = value, at = now(), who = A.who, version = version + 1 }
  local was = config('key:' .. key)
  if was then line.was = was end
  history[#history + 1] = line
  C('HSET', P .. ':config', 'key:' .. key, value)
  if key == 'halt_on' then C('DEL', P .. ':window') end -- another rule judges other answers
end
while #history > HISTORY_MAX do table.remove(history, 1) end
C('HSET', P .. ':config', 'version', version + 1, 'history', cjson.encode(history))
return { 'ok', version + 1 }
