-- Ends a job for the prompt's own fault: into RQ's FailedJobRegistry, with our class beside it.
--   args: lease {queue, index, eid}, round, status ('failed' | 'stopped'), failure (JSON text),
--         result {field, value ...} of RQ's Result, worker, working_s
--   keys: rounds, bits:accepted, failures, RQ's wip, job hash, failed, results, executions
--   returns {'ok'} | {'lost'} | {'round'} | {'duplicate'}
-- Invariant: only the holder of a live lease can fail a prompt, and none that has its answer.
-- RQ's own failure handler would put a job with retries left straight back to the front.
local l = A.lease
local id = job_id(l.index)
if hold(l.queue, id, l.eid) ~= 'held' then return { 'lost' } end
if A.round ~= round_of(l.index) then return { 'round' } end
if bit('accepted', l.index) == 1 then return { 'duplicate' } end
C('ZREM', 'rq:wip:' .. l.queue, id .. ':' .. l.eid)
end_execution(id, l.eid)
C('HDEL', 'rq:job:' .. id, 'attempts', 'strikes') -- `rq requeue` is a fresh start
C('HSET', 'rq:job:' .. id, 'status', A.status, 'retries_left', '1000', 'ended_at', iso(now()))
C('ZADD', 'rq:failed:' .. l.queue, -1, id) -- below every clock: RQ's clean-up never drops it
C('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', unpack(A.result))
C('HSET', P .. ':failures', id, A.failure)
count_job(A.worker, 'failed_job_count', 1, A.working_s)
return { 'ok' }
