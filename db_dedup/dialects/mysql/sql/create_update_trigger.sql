CREATE TRIGGER {trigger} AFTER UPDATE ON {table} FOR EACH ROW
IF NOT (CAST({old_key} AS BINARY) <=> CAST({new_key} AS BINARY)) THEN
    IF {old_key} IS NOT NULL THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            LEFT({old_key}, {max_length}),
            IF(CHAR_LENGTH({old_key}) > {max_length}, 'X', 'D'),
            UTC_TIMESTAMP(6)
        );
    END IF;
    IF {new_key} IS NOT NULL THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            LEFT({new_key}, {max_length}),
            IF(CHAR_LENGTH({new_key}) > {max_length}, 'X', 'I'),
            UTC_TIMESTAMP(6)
        );
    END IF;
ELSEIF {new_key} IS NOT NULL AND NOT ({is_unchanged}) THEN
    INSERT INTO {change} (table_id, row_key, operation, queued_at)
    VALUES (
        {table_id},
        LEFT({new_key}, {max_length}),
        IF(CHAR_LENGTH({new_key}) > {max_length}, 'X', 'U'),
        UTC_TIMESTAMP(6)
    );
END IF
