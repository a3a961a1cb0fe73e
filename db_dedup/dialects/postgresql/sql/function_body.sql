DECLARE
    old_key pg_catalog.text;
    new_key pg_catalog.text;
    new_operation pg_catalog.text := pg_catalog.left(TG_OP, 1);
    moment timestamp := pg_catalog.timezone('UTC', pg_catalog.clock_timestamp());
BEGIN
    IF new_operation OPERATOR(pg_catalog.=) 'T' THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES ({table_id}, '', 'T', moment);
        RETURN NULL;
    END IF;
    BEGIN
        IF new_operation OPERATOR(pg_catalog.<>) 'I' THEN
            old_key := {old_key};
        END IF;
        IF new_operation OPERATOR(pg_catalog.<>) 'D' THEN
            new_key := {new_key};
        END IF;
    EXCEPTION
        -- A key column was renamed: the user's write goes on.
        WHEN undefined_column THEN
            INSERT INTO {change} (table_id, row_key, operation, queued_at)
            VALUES ({table_id}, '', 'X', moment);
            RETURN NULL;
    END;
    IF old_key IS NOT NULL AND (
        new_key IS NULL OR pg_catalog.record_image_ne(ROW(old_key), ROW(new_key))
    ) THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            pg_catalog.left(old_key, {max_length}),
            CASE WHEN pg_catalog.length(old_key) OPERATOR(pg_catalog.>) {max_length} THEN 'X' ELSE 'D' END,
            moment
        );
        new_operation := 'I';
    END IF;
    IF new_key IS NOT NULL THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            pg_catalog.left(new_key, {max_length}),
            CASE WHEN pg_catalog.length(new_key) OPERATOR(pg_catalog.>) {max_length} THEN 'X' ELSE new_operation END,
            moment
        );
    END IF;
    RETURN NULL;
END
