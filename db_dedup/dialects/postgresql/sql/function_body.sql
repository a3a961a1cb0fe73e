DECLARE
    old_key pg_catalog.text;
    new_key pg_catalog.text;
    new_operation pg_catalog.text;
    moment timestamp;
BEGIN
    -- Each expression is made ready again in each transaction: the insert, the most frequent, takes the fewest.
    IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN
        BEGIN
            new_key := {new_key};
        EXCEPTION
            -- A key column was renamed: the user's write goes on.
            WHEN undefined_column THEN
                INSERT INTO {change} (table_id, row_key, operation, queued_at)
                VALUES ({table_id}, '', 'X', pg_catalog.timezone('UTC', pg_catalog.clock_timestamp()));
                RETURN NULL;
        END;
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            pg_catalog.left(new_key, {max_length}),
            CASE WHEN pg_catalog.length(new_key) OPERATOR(pg_catalog.>) {max_length} THEN 'X' ELSE 'I' END,
            pg_catalog.timezone('UTC', pg_catalog.clock_timestamp())
        );
        RETURN NULL;
    END IF;
    moment := pg_catalog.timezone('UTC', pg_catalog.clock_timestamp());
    new_operation := pg_catalog.left(TG_OP, 1);
    IF new_operation OPERATOR(pg_catalog.=) 'T' THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES ({table_id}, '', 'T', moment);
        RETURN NULL;
    END IF;
    BEGIN
        old_key := {old_key};
        IF new_operation OPERATOR(pg_catalog.=) 'U' THEN
            new_key := {new_key};
        END IF;
    EXCEPTION
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
