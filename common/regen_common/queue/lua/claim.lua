-- Leases up to `n` jobs to a consumer, from `queues` in the order given.
--   args: queues, n, token (unique per call), worker, lease_s
--   keys: rq:suspended, halt, stats, config, bits:accepted, rounds, RQ's queue, job hash, wip,
--         execution, executions, worker:executions
--   returns {'ok', config version, {index, eid, queue, round, attempts, strikes}...}
--         | {'suspended'} | {'halted'} | {'backlog'}
-- Invariant: nothing is leased that has its answer, is not queued, or has a live lease already.
if C('EXISTS', 'rq:suspended') == 1 then return { 'suspended' } end
if C('EXISTS', P .. ':halt') == 1 then return { 'halted' } end
local limit = setting('max_backlog')
if limit and tonumber(C('HGET', P .. ':stats', 'backlog') or '0') >= limit then
  return { 'backlog' }
end

local at = now()
local started_at = iso(at)
local out = { 'ok', config('version') or '0' }
local want, budget = A.n, 2000

local function lease(id, queue, job, serial)
  local eid = A.token .. string.format('%x', serial)
  local index = index_of(id)
  C('HSET', 'rq:job:' .. id, 'status', 'started', 'worker_name', A.worker,
    'started_at', started_at, 'eid', eid)
  C('ZADD', 'rq:wip:' .. queue, at + A.lease_s + LEASE_SLACK_S, id .. ':' .. eid)
  begin_execution(id, eid, A.worker, at, A.lease_s)
  out[#out + 1] = { index, eid, queue, round_of(index), tonumber(job[4] or '0'),
    tonumber(job[5] or '0') }
end

for _, queue in ipairs(A.queues) do
  while want > 0 and budget > 0 do
    local ids = C('LPOP', 'rq:queue:' .. queue, math.min(want, budget))
    if not ids then break end
    budget = budget - #ids
    for _, id in ipairs(ids) do
      local job = C('HMGET', 'rq:job:' .. id, 'status', 'data', 'eid', 'attempts', 'strikes')
      if not job[2] then -- deleted by hand, or a stub
      elseif bit('accepted', index_of(id)) == 1 then C('DEL', 'rq:job:' .. id)
      elseif job[1] ~= 'queued' then -- a second copy of an id, or a cancel between our steps
      elseif job[3] and C('ZSCORE', 'rq:wip:' .. queue, id .. ':' .. job[3]) then
        -- RQ's clean-up, which does not watch, put a job back whose lease had been renewed
        C('HSET', 'rq:job:' .. id, 'status', 'started')
      else
        lease(id, queue, job, want)
        want = want - 1
      end
    end
  end
end
return out
