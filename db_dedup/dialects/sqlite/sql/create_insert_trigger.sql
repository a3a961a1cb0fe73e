CREATE TRIGGER {trigger} AFTER INSERT ON {table}
WHEN {new_key} IS NOT NULL
BEGIN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    VALUES (
        {table_id},
        substr({new_key}, 1, {max_length}),
        CASE WHEN length({new_key}) > {max_length} THEN 'X' ELSE 'I' END,
        {now}
    );
END
