-- Sends failed and canceled prompts round again, as `rq requeue` does with failed ones, but many at
-- once and in one step.
--   args: queue, ids
--   keys: bits:accepted, failures, RQ's failed, canceled, job hash, queue
--   returns {'ok', jobs put back}
-- Invariant: only what is in one of the two registries moves, so a repeated call moves nothing.
local back = 0
for _, id in ipairs(A.ids) do
  local taken = C('ZREM', 'rq:failed:' .. A.queue, id) + C('ZREM', 'rq:canceled:' .. A.queue, id)
  if taken > 0 then
    C('HDEL', P .. ':failures', id)
    local index = index_of(id)
    if bit('accepted', index) == 1 then
      C('DEL', 'rq:job:' .. id, 'rq:results:' .. id)
    else
      new_job(index, string.match(A.queue, '([^-]+)$'))
      back = back + 1
    end
  end
end
return { 'ok', back }
