-- Lets this run claim again, with an empty quality window.
--   args: none   keys: halt, window   returns {'ok', 1 | 0} (was it halted?)
local was = C('DEL', P .. ':halt')
C('DEL', P .. ':window')
return { 'ok', was }
