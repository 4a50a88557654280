-- Extends a consumer's leases.
--   args: leases {queue, index, eid}, lease_s
--   keys: RQ's wip, job hash, execution, executions
--   returns {'ok', {index, eid}...} with the leases that are no longer mine
-- Invariant: never brings a lease back that was reaped, finished or claimed by another.
local at = now()
local out = { 'ok' }
for _, l in ipairs(A.leases) do
  local id = job_id(l.index)
  if hold(l.queue, id, l.eid) == 'lost' then
    out[#out + 1] = { l.index, l.eid }
  else
    C('ZADD', 'rq:wip:' .. l.queue, 'XX', at + A.lease_s + LEASE_SLACK_S, id .. ':' .. l.eid)
    C('ZADD', 'rq:executions:' .. id, 'XX', at + A.lease_s + 2 * LEASE_SLACK_S, l.eid)
    C('EXPIRE', 'rq:executions:' .. id, A.lease_s + 3 * LEASE_SLACK_S)
    C('EXPIRE', 'rq:execution:' .. id .. ':' .. l.eid, A.lease_s + 3 * LEASE_SLACK_S)
  end
end
return out
