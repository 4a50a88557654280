-- All counts of one moment. Nothing is derived from the total: the caller takes the difference.
--   args: categories
--   keys: config, stats, redo, results, intents, halt, RQ's queue, wip, failed, canceled
--   returns {'ok', input, rejected, stream, redo, done intents open, suspended, halt or false,
--            {category, plan, enqueued, queued, leased, failed, done, failed and redo}...}
local out = { 'ok', tonumber(config('input')), tonumber(config('rejected')),
  C('XLEN', P .. ':results'), C('SCARD', P .. ':redo'), C('HLEN', P .. ':intents'),
  C('EXISTS', 'rq:suspended'), C('GET', P .. ':halt') }
for _, category in ipairs(A.categories) do
  local queue = queue_of(category)
  local failed, failed_redo = 0, 0
  for _, registry in ipairs({ 'failed', 'canceled' }) do
    local key = 'rq:' .. registry .. ':' .. queue
    failed = failed + C('ZCARD', key)
    failed_redo = failed_redo + C('ZINTERCARD', 2, key, P .. ':redo')
  end
  local stats = C('HMGET', P .. ':stats', 'enqueued:' .. category, 'done:' .. category)
  out[#out + 1] = { category, tonumber(config('plan:' .. category)), tonumber(stats[1] or '0'),
    C('LLEN', 'rq:queue:' .. queue), C('ZCARD', 'rq:wip:' .. queue), failed,
    tonumber(stats[2] or '0'), failed_redo }
end
return out
