-- Stops this run's claims. (`rq suspend` is for every run in that Redis.)
--   args: why, detail   keys: halt   returns {'ok'}
-- Invariant: the first reason stands.
C('SET', P .. ':halt', cjson.encode({ why = A.why, detail = A.detail, at = now() }), 'NX')
return { 'ok' }
