SELECT t.tgname, n.nspname, c.relname, p.proname
FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND strpos(p.prosrc, :change) > 0
ORDER BY 1, 2, 3
