SELECT attname, format_type(atttypid, atttypmod)
FROM pg_attribute
WHERE attrelid = :table AND attnum > 0 AND NOT attisdropped
