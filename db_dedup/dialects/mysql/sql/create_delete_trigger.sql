CREATE TRIGGER {trigger} AFTER DELETE ON {table} FOR EACH ROW
IF {old_key} IS NOT NULL THEN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    VALUES (
        {table_id},
        LEFT({old_key}, {max_length}),
        IF(CHAR_LENGTH({old_key}) > {max_length}, 'X', 'D'),
        UTC_TIMESTAMP(6)
    );
END IF
