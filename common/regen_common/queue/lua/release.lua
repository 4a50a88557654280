-- Hands leases back to the front of their queues, in the order given.
--   args: leases {queue, index, eid}, charge ('none' | 'attempt' | 'strike')
--   keys: bits:accepted, RQ's wip, job hash, queue, executions
--   returns {'ok', jobs put back}
-- Invariant: only a live lease is given back; what has its answer is not queued again.
local field = ({ attempt = 'attempts', strike = 'strikes' })[A.charge]
local back = 0
for k = #A.leases, 1, -1 do -- the last first, so that the first ends up in front
  local l = A.leases[k]
  local id = job_id(l.index)
  local mine = hold(l.queue, id, l.eid)
  if mine ~= 'lost' then
    C('ZREM', 'rq:wip:' .. l.queue, id .. ':' .. l.eid)
    end_execution(id, l.eid)
  end
  if mine == 'held' then
    if bit('accepted', l.index) == 1 then
      C('DEL', 'rq:job:' .. id)
    else
      C('HSET', 'rq:job:' .. id, 'status', 'queued')
      if field then C('HINCRBY', 'rq:job:' .. id, field, 1) end
      C('LPUSH', 'rq:queue:' .. l.queue, id)
      back = back + 1
    end
  end
end
return { 'ok', back }
