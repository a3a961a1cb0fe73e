ALTER TABLE {only}{table} ENABLE ALWAYS TRIGGER {trigger}
