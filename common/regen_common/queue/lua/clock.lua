-- The time of every transition is Redis' own. Tests replace this file to move the clock.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000
end
