DO $db_dedup$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_namespace
        WHERE nspname = {name_text} AND pg_catalog.obj_description(oid, 'pg_namespace') = {mark}
    ) THEN
        DROP SCHEMA {name} RESTRICT;
    END IF;
EXCEPTION
    -- Someone keeps objects of their own in it.
    WHEN dependent_objects_still_exist THEN NULL;
END
$db_dedup$
