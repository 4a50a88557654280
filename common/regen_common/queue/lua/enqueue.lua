-- Makes jobs of prompts. With `new`, moves the category's cursor from `expected` to `new`; without,
-- it is a canary or a sweep and leaves the cursor alone.
--   args: category, indices, expected, new (null: no cursor), deep, room (jobs at most)
--   keys: bits:rejected bits:accepted bits:enqueued cursor:CAT stats, RQ's job hash, queue,
--         failed, canceled, wip
--   returns {'ok', cursor, jobs made} | {'stale', cursor} | {'full', cursor}
-- Invariant: a prompt has at most one job, in one place; going back over old indices adds nothing.
local queue = queue_of(A.category)
local cursor_key = P .. ':cursor:' .. A.category
local cursor = tonumber(C('GET', cursor_key) or '0')
local moves = A.new ~= cjson.null and A.new ~= nil
if moves and cursor ~= A.expected then return { 'stale', cursor } end

local limit = setting('max_queued')
if moves and limit then
  local queued = 0
  for _, category in ipairs(A.categories) do
    queued = queued + C('LLEN', 'rq:queue:' .. queue_of(category))
  end
  if queued + #A.indices > limit then return { 'full', cursor } end
end

-- A hash that is in no place: RQ died between taking it out of one and putting it into the next,
-- or wrote a stub over a job that had ended. The place a status names is looked up, not believed.
local function misplaced(id, index)
  local job = C('HMGET', job_key(index), 'status', 'eid', 'data')
  if not job[3] then return true end
  if job[1] == 'failed' or job[1] == 'stopped' then
    return not C('ZSCORE', 'rq:failed:' .. queue, id)
  elseif job[1] == 'canceled' then
    return not C('ZSCORE', 'rq:canceled:' .. queue, id)
  elseif job[1] == 'started' then
    return not (job[2] and C('ZSCORE', 'rq:wip:' .. queue, id .. ':' .. job[2]))
  elseif job[1] == 'queued' then
    return A.deep and not C('LPOS', 'rq:queue:' .. queue, id) -- the whole list: only when asked
  end
  return true
end

local made = 0
for _, index in ipairs(A.indices) do
  if bit('rejected', index) == 0 then
    if bit('accepted', index) == 0 then
      local id = job_id(index)
      if C('EXISTS', job_key(index)) == 0 or misplaced(id, index) then
        new_job(index, A.category)
        made = made + 1
      end
    end
    if C('SETBIT', P .. ':bits:enqueued', index, 1) == 0 then count('enqueued:' .. A.category, 1) end
  end
end
if moves then
  cursor = A.new
  C('SET', cursor_key, string.format('%d', cursor))
end
return { 'ok', cursor, made }
