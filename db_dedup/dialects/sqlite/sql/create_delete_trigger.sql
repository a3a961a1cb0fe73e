CREATE TRIGGER {trigger} AFTER DELETE ON {table}
WHEN {old_key} IS NOT NULL
BEGIN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    VALUES (
        {table_id},
        substr({old_key}, 1, {max_length}),
        CASE WHEN length({old_key}) > {max_length} THEN 'X' ELSE 'D' END,
        {now}
    );
END
