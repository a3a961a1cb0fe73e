CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH ROW
IF {new_key} IS NOT NULL THEN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    VALUES (
        {table_id},
        LEFT({new_key}, {max_length}),
        IF(CHAR_LENGTH({new_key}) > {max_length}, 'X', 'I'),
        UTC_TIMESTAMP(6)
    );
END IF
