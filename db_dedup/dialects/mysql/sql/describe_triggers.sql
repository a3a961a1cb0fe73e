SELECT
    trigger_name,
    CONCAT_WS(' ', action_timing, event_manipulation, 'ON', event_object_table, action_statement, definer)
FROM information_schema.triggers
WHERE trigger_schema = COALESCE(:schema, DATABASE()) AND trigger_name IN :names
