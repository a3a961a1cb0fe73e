DECLARE
    old_key text;
    new_key text;
    new_operation text := left(TG_OP, 1);
    moment timestamp := clock_timestamp() AT TIME ZONE 'UTC';
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES ({table_id}, '', 'T', moment);
        RETURN NULL;
    END IF;
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            old_key := {old_key};
        END IF;
        IF TG_OP <> 'DELETE' THEN
            new_key := {new_key};
        END IF;
    EXCEPTION
        -- A key column was renamed: the user's write goes on.
        WHEN undefined_column THEN
            INSERT INTO {change} (table_id, row_key, operation, queued_at)
            VALUES ({table_id}, '', 'X', moment);
            RETURN NULL;
    END;
    IF old_key IS NOT NULL AND (new_key IS NULL OR old_key COLLATE "C" <> new_key COLLATE "C") THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            left(old_key, {max_length}),
            CASE WHEN length(old_key) > {max_length} THEN 'X' ELSE 'D' END,
            moment
        );
        new_operation := 'I';
    END IF;
    IF new_key IS NOT NULL THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            left(new_key, {max_length}),
            CASE WHEN length(new_key) > {max_length} THEN 'X' ELSE new_operation END,
            moment
        );
    END IF;
    RETURN NULL;
END
