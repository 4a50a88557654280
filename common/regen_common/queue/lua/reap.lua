-- Puts jobs back whose lease expired by Redis' time, and sweeps failed and canceled of what is over.
--   args: queue, offset (into the registries, for the sweep; 2,000 entries a call)
--   keys: bits:accepted, failures, RQ's wip, job hash, queue, failed, canceled, results, executions
--   returns {'ok', jobs put back, next offset (0: the registries' end was reached)}
-- Invariant: never fails a prompt; a lease that was taken over is not put back a second time.
local REAP_MAX, SWEEP_MAX = 1000, 2000
local back = 0
local expired = C('ZRANGEBYSCORE', 'rq:wip:' .. A.queue, '-inf', now() + LEASE_SLACK_S,
  'LIMIT', 0, REAP_MAX)
for k = #expired, 1, -1 do -- the last first, so that the oldest lease ends up in front
  local member = expired[k]
  local id, eid = string.match(member, '^([^:]+):(.+)$')
  local mine = hold(A.queue, id, eid)
  C('ZREM', 'rq:wip:' .. A.queue, member)
  end_execution(id, eid)
  if mine == 'held' then
    if bit('accepted', index_of(id)) == 1 then
      C('DEL', 'rq:job:' .. id)
    else
      C('HSET', 'rq:job:' .. id, 'status', 'queued')
      C('LPUSH', 'rq:queue:' .. A.queue, id)
      back = back + 1
    end
  end
end

-- A cancel or clean-up of RQ that raced a finish leaves a stub of a prompt that has its answer.
local seen = 0
for _, registry in ipairs({ 'failed', 'canceled' }) do
  local key = 'rq:' .. registry .. ':' .. A.queue
  local ids = C('ZRANGE', key, A.offset, A.offset + SWEEP_MAX / 2 - 1)
  seen = math.max(seen, #ids)
  for _, id in ipairs(ids) do
    if bit('accepted', index_of(id)) == 1 or C('HEXISTS', 'rq:job:' .. id, 'data') == 0 then
      C('ZREM', key, id)
      C('DEL', 'rq:job:' .. id, 'rq:results:' .. id)
      C('HDEL', P .. ':failures', id)
    end
  end
end
return { 'ok', back, seen == SWEEP_MAX / 2 and A.offset + seen or 0 }
