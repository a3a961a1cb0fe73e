CREATE TRIGGER {trigger} AFTER UPDATE ON {table}
WHEN {has_changed}
BEGIN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    SELECT
        {table_id},
        CASE WHEN length(row_key) > {max_length} THEN substr(row_key, 1, {max_length}) ELSE row_key END,
        CASE WHEN length(row_key) > {max_length} THEN 'X' ELSE operation END,
        {now}
    FROM (
        SELECT {old_key} AS row_key, 'D' AS operation
        WHERE {old_key} IS NOT {new_key}
        UNION ALL
        SELECT {new_key}, CASE WHEN {old_key} IS {new_key} THEN 'U' ELSE 'I' END
    )
    WHERE row_key IS NOT NULL;
END
