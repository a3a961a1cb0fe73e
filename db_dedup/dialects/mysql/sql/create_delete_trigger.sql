CREATE TRIGGER {trigger} AFTER DELETE ON {table} FOR EACH ROW
BEGIN
    DECLARE key_text LONGTEXT CHARACTER SET utf8mb4 DEFAULT {old_key};
    IF key_text IS NOT NULL THEN
        INSERT INTO {change} (table_id, row_key, operation, queued_at)
        VALUES (
            {table_id},
            LEFT(key_text, {max_length}),
            IF(CHAR_LENGTH(key_text) > {max_length}, 'X', 'D'),
            UTC_TIMESTAMP(6)
        );
    END IF;
END
