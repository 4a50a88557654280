-- Accepts answers: ends their jobs and appends their records to the results stream, in one step.
--   args: worker, records {index, eid, round, category, mask, tokens, latency_s}; ARGV[k+1] is the
--         body of record k; labels (all, in mask order), sample_s, samples_max, categories
--   keys: rounds, bits:accepted, bits:enqueued, results, stats, rate, window, halt, failures,
--         config, RQ's job hash, queue, wip, failed, canceled, results, execution, executions
--   returns {'ok', 'accepted' | 'duplicate' | 'round' ...} one word per record
-- Invariant: the first answer for (index, round) wins, whoever brings it and however late. The
-- lease is not asked for: an eleven-minute answer must not be lost to a late heartbeat.
local at = now()
local out = { 'ok' }
local accepted, working_s, bytes = 0, 0, 0

local function end_job(r, id)
  local queue = queue_of(r.category)
  local job = C('HMGET', 'rq:job:' .. id, 'status', 'eid')
  C('ZREM', 'rq:wip:' .. queue, id .. ':' .. r.eid)
  end_execution(id, r.eid)
  if job[2] and job[2] ~= r.eid then -- reaped and claimed anew: the present holder's lease
    C('ZREM', 'rq:wip:' .. queue, id .. ':' .. job[2])
    end_execution(id, job[2])
  end
  if job[1] == 'queued' then C('LREM', 'rq:queue:' .. queue, 1, id) end
  C('ZREM', 'rq:failed:' .. queue, id)
  C('ZREM', 'rq:canceled:' .. queue, id)
  C('DEL', 'rq:job:' .. id, 'rq:results:' .. id)
  C('HDEL', P .. ':failures', id)
end

local function accept(r, body)
  C('SETBIT', P .. ':bits:accepted', r.index, 1)
  if C('SETBIT', P .. ':bits:enqueued', r.index, 1) == 0 then -- its enqueueing was lost
    count('enqueued:' .. r.category, 1)
  end
  C('XADD', P .. ':results', '*', 'i', r.index, 'r', r.round, 'e', epoch, 'c', r.category,
    'l', r.mask, 'b', body)
  count('finished:' .. r.category, 1)
  count('tokens:' .. r.category, r.tokens)
  C('HINCRBYFLOAT', P .. ':stats', 'tokens_sq:' .. r.category, r.tokens * r.tokens)
  C('LPUSH', P .. ':window', r.mask)
  end_job(r, job_id(r.index))
end

local function carries(mask, wanted)
  if mask == 0 then return false end
  for place, label in ipairs(A.labels) do
    if math.floor(mask / 2 ^ (place - 1)) % 2 == 1 then
      for _, one in ipairs(wanted) do if one == label then return true end end
    end
  end
  return false
end

for k, r in ipairs(A.records) do
  if r.round ~= round_of(r.index) then out[#out + 1] = 'round'
  elseif bit('accepted', r.index) == 1 then out[#out + 1] = 'duplicate'
  else
    accept(r, ARGV[k + 1])
    accepted = accepted + 1
    working_s = working_s + r.latency_s
    bytes = bytes + #ARGV[k + 1]
    out[#out + 1] = 'accepted'
  end
end
if accepted == 0 then return out end

count('backlog', bytes)
count_job(A.worker, 'successful_job_count', accepted, working_s)

-- Time with answers in it, so that a rate over the whole run does not count nights off.
local stats = C('HMGET', P .. ':stats', 'last_finish', 'first_finish')
if not stats[2] then C('HSET', P .. ':stats', 'first_finish', string.format('%.3f', at)) end
local gap = math.max(0, at - tonumber(stats[1] or at))
C('HINCRBYFLOAT', P .. ':stats', 'active_s', string.format('%.3f', math.min(gap, 60)))
C('HSET', P .. ':stats', 'last_finish', string.format('%.3f', at))

local newest = C('LINDEX', P .. ':rate', 0)
if not newest or at - tonumber(string.match(newest, '^(%S+)')) >= A.sample_s then
  local finished, tokens = 0, 0
  for _, category in ipairs(A.categories) do
    local s = C('HMGET', P .. ':stats', 'finished:' .. category, 'tokens:' .. category)
    finished, tokens = finished + tonumber(s[1] or '0'), tokens + tonumber(s[2] or '0')
  end
  C('LPUSH', P .. ':rate', string.format('%.3f %d %d', at, finished, tokens))
  C('LTRIM', P .. ':rate', 0, A.samples_max - 1)
end

-- The quality window: a run whose newest answers are mostly worthless stops claiming.
local rule = setting('halt_on')
if not rule then C('LTRIM', P .. ':window', 0, 0) return out end
C('LTRIM', P .. ':window', 0, rule.window - 1)
local size = C('LLEN', P .. ':window')
if size >= rule.min_answers then
  local bad = 0
  for _, mask in ipairs(C('LRANGE', P .. ':window', 0, -1)) do
    if carries(tonumber(mask), rule.labels) then bad = bad + 1 end
  end
  if bad >= rule.rate * size then
    C('SET', P .. ':halt', cjson.encode({ why = 'quality', at = at,
      detail = string.format('%d of the last %d answers were %s', bad, size,
        table.concat(rule.labels, ' or ')) }), 'NX')
  end
end
return out
