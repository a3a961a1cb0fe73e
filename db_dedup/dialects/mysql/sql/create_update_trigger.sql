CREATE TRIGGER {trigger} AFTER UPDATE ON {table} FOR EACH ROW
IF NOT ({is_unchanged}) THEN
    BEGIN
        DECLARE old_key LONGTEXT CHARACTER SET utf8mb4 DEFAULT {old_key};
        DECLARE new_key LONGTEXT CHARACTER SET utf8mb4 DEFAULT {new_key};
        DECLARE is_same BOOLEAN DEFAULT CAST(old_key AS BINARY) <=> CAST(new_key AS BINARY);
        IF old_key IS NOT NULL AND NOT is_same THEN
            INSERT INTO {change} (table_id, row_key, operation, queued_at)
            VALUES (
                {table_id},
                LEFT(old_key, {max_length}),
                IF(CHAR_LENGTH(old_key) > {max_length}, 'X', 'D'),
                UTC_TIMESTAMP(6)
            );
        END IF;
        IF new_key IS NOT NULL THEN
            INSERT INTO {change} (table_id, row_key, operation, queued_at)
            VALUES (
                {table_id},
                LEFT(new_key, {max_length}),
                IF(CHAR_LENGTH(new_key) > {max_length}, 'X', IF(is_same, 'U', 'I')),
                UTC_TIMESTAMP(6)
            );
        END IF;
    END;
END IF
