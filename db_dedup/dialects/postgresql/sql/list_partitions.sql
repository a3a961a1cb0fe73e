-- Partitions of all levels that can be named without a schema.
SELECT relname
FROM pg_catalog.pg_class
WHERE relispartition AND relkind IN ('r', 'p', 'f') AND pg_catalog.pg_table_is_visible(oid)
