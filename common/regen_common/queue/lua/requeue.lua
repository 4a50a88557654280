-- Sends prompts again that have an answer at the destination: a new round.
--   args: items {index, round (the present one), category}
--   keys: bits:done, bits:accepted, rounds, redo, RQ's job hash, queue, failed, canceled
--   returns {'ok', jobs made}
-- Invariant: one step from the round the caller saw, and none while a newer answer is on its way,
-- so a repeated call asks nothing twice and labels come in the order of rounds.
local ROUND_MAX = 15
local made = 0
for _, item in ipairs(A.items) do
  local index, id = item.index, job_id(item.index)
  local round = round_of(index)
  if bit('done', index) == 1 and bit('accepted', index) == 1 and round == item.round
      and round < ROUND_MAX and C('SISMEMBER', P .. ':redo', id) == 0 then
    C('BITFIELD', P .. ':rounds', 'SET', 'u4', '#' .. index, round + 1)
    C('SETBIT', P .. ':bits:accepted', index, 0)
    C('SADD', P .. ':redo', id)
    new_job(index, item.category)
    made = made + 1
  end
end
return { 'ok', made }
