DO $db_dedup$
BEGIN
    -- CREATE SCHEMA IF NOT EXISTS asks for the right to create one even where it exists.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = {name_text}) THEN
        CREATE SCHEMA {name};
        COMMENT ON SCHEMA {name} IS {mark};
    END IF;
END
$db_dedup$
