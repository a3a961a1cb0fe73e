CREATE TRIGGER {trigger} AFTER INSERT ON {table}
BEGIN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    SELECT
        {table_id},
        CASE WHEN length(row_key) > {max_length} THEN substr(row_key, 1, {max_length}) ELSE row_key END,
        CASE WHEN length(row_key) > {max_length} THEN 'X' ELSE 'I' END,
        {now}
    FROM (SELECT {new_key} AS row_key)
    WHERE row_key IS NOT NULL;
END
