-- Brings a run into being, or lets its input grow: everything that belongs together in one step.
--   args: any_epoch, token (of the staged bitmaps), names (of them), epoch (a new run's), config
--         {field: value}, expected_input (null: create; else the size that is to grow)
--   keys: epoch, config, bits:NAME, new:TOKEN:NAME
--   returns {'ok'} | {'exists'} | {'grown', input}
-- Invariant: the epoch is there last; bitmaps are staged under names that expire, and moved in here.
local grows = A.expected_input ~= cjson.null and A.expected_input ~= nil
if not grows and epoch then return { 'exists' } end
if grows then
  if epoch ~= A.epoch then return { 'epoch' } end
  local input = tonumber(config('input'))
  if input ~= A.expected_input then return { 'grown', input } end
end
for _, name in ipairs(A.names) do
  local staged = P .. ':new:' .. A.token .. ':' .. name
  if C('EXISTS', staged) == 1 then
    C('RENAME', staged, P .. ':bits:' .. name)
    C('PERSIST', P .. ':bits:' .. name)
  end
end
for field, value in pairs(A.config) do C('HSET', P .. ':config', field, value) end
if not grows then C('SET', P .. ':epoch', A.epoch) end
return { 'ok' }
