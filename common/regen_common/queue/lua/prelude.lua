-- Stands before every transition: names of keys, and what several transitions do alike.
-- ARGV[1] is JSON of the named arguments; ARGV[2..] are raw bodies where a transition takes them.
-- Every call names the run and its epoch; a call of another epoch changes nothing.
--
-- Fields of {p}:stats
--   enqueued:CAT done:CAT finished:CAT   prompts, answers at the destination, answers accepted
--   tokens:CAT tokens_sq:CAT             output tokens of accepted answers, and their squares
--   label:LABEL:CAT                      prompts whose counted answer carries the label
--   backlog                              bytes of records in the stream
--   batches batch_bytes                  objects at the destination, and their size there
--   first_finish last_finish active_s    when answers came, and for how long without a minute's gap
local A = cjson.decode(ARGV[1])
local C = redis.call
local P = 'regen:' .. A.run
local LEASE_SLACK_S = 3600 -- RQ's clean-up trusts the clock of whoever types `rq info`

local function job_id(index) return A.run .. '-' .. string.format('%d', index) end
local function job_key(index) return 'rq:job:' .. job_id(index) end
local function queue_of(category) return A.run .. '-' .. category end
local function index_of(id) return tonumber(string.match(id, '%-(%d+)$')) end
local function bit(name, index) return C('GETBIT', P .. ':bits:' .. name, index) end
local function round_of(index) return C('BITFIELD', P .. ':rounds', 'GET', 'u4', '#' .. index)[1] end
local function count(field, n) if n ~= 0 then C('HINCRBY', P .. ':stats', field, n) end end
local function config(field) return C('HGET', P .. ':config', field) end
local function setting(name)
  local value = config('key:' .. name)
  if value and value ~= 'null' then return cjson.decode(value) end
end

-- Seconds since 1970 as RQ writes times: 2026-12-01T04:11:42.000000Z (days to date after Hinnant)
local function iso(seconds)
  local whole = math.floor(seconds)
  local z = math.floor(whole / 86400) + 719468
  local rest = whole % 86400
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
    - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', year, month, day,
    math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60,
    math.floor((seconds - whole) * 1000000))
end

-- Every field stays below 64 bytes: beyond that Redis leaves its compact encoding.
local function new_job(index, category)
  local id, queue, at = job_id(index), queue_of(category), iso(now())
  C('DEL', job_key(index))
  C('ZREM', 'rq:failed:' .. queue, id)
  C('ZREM', 'rq:canceled:' .. queue, id)
  C('HSET', job_key(index),
    'data', '["regen_consumer.jobs.regenerate",null,[' .. string.format('%d', index) .. '],{}]',
    'origin', queue, 'status', 'queued', 'description', id, 'created_at', at, 'enqueued_at', at,
    'timeout', '-1', 'result_ttl', '0', 'failure_ttl', '-1',
    'retries_left', '1000', 'enqueue_at_front_on_retry', '1')
  C('RPUSH', 'rq:queue:' .. queue, id)
  C('SADD', 'rq:queues', 'rq:queue:' .. queue)
end

-- RQ's cancel and delete find a lease through these, so they live and die with it.
local function begin_execution(id, eid, worker, at, lease_s)
  local composite = id .. ':' .. eid
  C('HSET', 'rq:execution:' .. composite, 'id', eid, 'job_id', id, 'worker_name', worker,
    'created_at', at, 'last_heartbeat', at)
  C('EXPIRE', 'rq:execution:' .. composite, lease_s + 3 * LEASE_SLACK_S)
  C('ZADD', 'rq:executions:' .. id, at + lease_s + 2 * LEASE_SLACK_S, eid)
  C('EXPIRE', 'rq:executions:' .. id, lease_s + 3 * LEASE_SLACK_S)
  C('SADD', 'rq:worker:' .. worker .. ':executions', composite)
end

local function end_execution(id, eid)
  local composite = id .. ':' .. eid
  local worker = C('HGET', 'rq:execution:' .. composite, 'worker_name')
  if worker then C('SREM', 'rq:worker:' .. worker .. ':executions', composite) end
  C('DEL', 'rq:execution:' .. composite, 'rq:executions:' .. id)
end

-- A worker's counters, as `rq info` and dashboards show them. A hash that is gone stays gone.
local function count_job(worker, field, n, working_s)
  local key = 'rq:worker:' .. worker
  if n > 0 and C('EXISTS', key) == 1 then
    C('HINCRBY', key, field, n)
    C('HINCRBYFLOAT', key, 'total_working_time', working_s)
  end
end

-- Whose is the lease? 'held': mine, and RQ has not moved the job. 'moved': the entry is mine, but
-- RQ changed the job's status behind it (cancel, clean-up). 'lost': expired, reaped, claimed anew.
local function hold(queue, id, eid)
  if not C('ZSCORE', 'rq:wip:' .. queue, id .. ':' .. eid) then return 'lost' end
  local job = C('HMGET', 'rq:job:' .. id, 'status', 'eid')
  if job[2] ~= eid then return 'lost' end
  return job[1] == 'started' and 'held' or 'moved'
end

local epoch = C('GET', P .. ':epoch')
if not A.any_epoch then
  if not epoch then return { 'norun' } end
  if A.epoch ~= epoch then return { 'epoch' } end
end
