SELECT
    p.proname,
    pg_get_functiondef(p.oid) || CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN ' public' ELSE '' END
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = :schema AND p.proname = :function AND p.pronargs = 0
