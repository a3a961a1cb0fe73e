-- Tables and views of a schema that can be named without it.
SELECT relname
FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema
    AND relkind IN ('r', 'p', 'f', 'v', 'm')
    AND pg_catalog.pg_table_is_visible(pg_class.oid)
