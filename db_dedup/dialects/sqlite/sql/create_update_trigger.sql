CREATE TRIGGER {trigger} AFTER UPDATE ON {table}
WHEN {old_key} IS NOT {new_key} OR {has_changed}
BEGIN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    SELECT
        {table_id},
        substr({old_key}, 1, {max_length}),
        CASE WHEN length({old_key}) > {max_length} THEN 'X' ELSE 'D' END,
        {now}
    WHERE {old_key} IS NOT NULL AND {old_key} IS NOT {new_key};
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    SELECT
        {table_id},
        substr({new_key}, 1, {max_length}),
        CASE
            WHEN length({new_key}) > {max_length} THEN 'X'
            WHEN {old_key} IS {new_key} THEN 'U'
            ELSE 'I'
        END,
        {now}
    WHERE {new_key} IS NOT NULL;
END
