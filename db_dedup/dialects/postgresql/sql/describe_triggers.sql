SELECT
    CASE WHEN t.tgparentid = 0 THEN t.tgname::text ELSE t.tgname || ' on ' || t.tgrelid::regclass END,
    pg_get_triggerdef(t.oid),
    t.tgenabled::text
FROM pg_trigger AS t
WHERE (t.tgrelid = CAST(:table AS oid) AND t.tgparentid = 0 AND t.tgname = ANY(:names))
   OR (
       t.tgparentid <> 0 AND t.tgenabled <> 'A' AND t.tgfoid = (
           SELECT p.oid
           FROM pg_proc AS p
           JOIN pg_namespace AS n ON n.oid = p.pronamespace
           WHERE n.nspname = :schema AND p.proname = :function AND p.pronargs = 0
       )
   )
ORDER BY 1
