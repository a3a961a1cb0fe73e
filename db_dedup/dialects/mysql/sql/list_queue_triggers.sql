SELECT trigger_name, event_object_table
FROM information_schema.triggers
WHERE trigger_schema = DATABASE() AND INSTR(action_statement, :change) > 0
ORDER BY trigger_name
