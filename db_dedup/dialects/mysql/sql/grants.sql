-- The owner: upgrade, uninstall. Run this part before `db-dedup upgrade`.
GRANT CREATE, DROP, INDEX, SELECT, INSERT, UPDATE, DELETE ON {ours[alembic_version]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT, UPDATE ON {ours[watched_table]} TO {owner};
GRANT CREATE, ALTER, DROP, INDEX, SELECT ON {ours[fingerprint]} TO {owner};
GRANT CREATE, ALTER, DROP, INDEX, SELECT ON {ours[pair]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[band]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[sketch_index]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[sketch_segment]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[verdict]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[scan]} TO {owner};
GRANT CREATE, DROP, SELECT ON {ours[frame_list]} TO {owner};
GRANT CREATE, DROP, SELECT ON {ours[reservation]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT ON {ours[group_change]} TO {owner};
GRANT CREATE, ALTER, DROP, INDEX, SELECT, INSERT, UPDATE, DELETE ON {ours[change]} TO {owner};
GRANT CREATE, DROP, INDEX, SELECT, DELETE ON {ours[dead_change]} TO {owner};
GRANT CREATE, CREATE VIEW, DROP, SELECT ON {ours[duplicate_pairs]} TO {owner};
GRANT CREATE, CREATE VIEW, DROP, SELECT ON {ours[duplicate_groups]} TO {owner};
GRANT CREATE, CREATE VIEW, DROP, SELECT ON {ours[duplicate_members]} TO {owner};
GRANT CREATE, CREATE VIEW, DROP, SELECT ON {ours[queue_lag]} TO {owner};
GRANT CREATE, DROP ON {view} TO {owner};
GRANT TRIGGER ON {table} TO {owner};

-- The scanner: scan, verify, worker, retry, schedule, run. It needs TRIGGER only to see the triggers: the
-- server hides them from accounts that could not make them.
GRANT SELECT, TRIGGER ON {table} TO {scanner};
GRANT SELECT ON {ours[alembic_version]} TO {scanner};
GRANT SELECT, INSERT, UPDATE ON {ours[watched_table]} TO {scanner};
GRANT SELECT, INSERT, UPDATE ON {ours[scan]} TO {scanner};
GRANT SELECT, INSERT, UPDATE, DELETE ON {ours[fingerprint]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[pair]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[band]} TO {scanner};
GRANT SELECT, INSERT, UPDATE, DELETE ON {ours[sketch_index]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[sketch_segment]} TO {scanner};
GRANT SELECT ON {ours[verdict]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[frame_list]} TO {scanner};
GRANT SELECT ON {ours[reservation]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[group_change]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[change]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[dead_change]} TO {scanner};
GRANT SELECT ON {ours[duplicate_pairs]} TO {scanner};
GRANT SELECT ON {ours[duplicate_groups]} TO {scanner};
GRANT SELECT ON {ours[duplicate_members]} TO {scanner};
GRANT SELECT ON {ours[queue_lag]} TO {scanner};
GRANT CREATE, CREATE VIEW, SHOW VIEW, DROP ON {view} TO {scanner};

-- The attacher: attach, detach. For a table that was never scanned it also needs INSERT on our
-- watched_table.
GRANT SELECT, TRIGGER ON {table} TO {attacher};
GRANT SELECT ON {ours[alembic_version]} TO {attacher};
GRANT SELECT, UPDATE ON {ours[watched_table]} TO {attacher};
GRANT SELECT, INSERT, DELETE ON {ours[change]} TO {attacher};
GRANT SELECT, DELETE ON {ours[dead_change]} TO {attacher};

-- The clerk: pairs, groups, history, explain, label, calibrate, compare, check, export, report, status,
-- sql, serve. Only label and serve need the rights to write: serve for reservations and labels.
GRANT SELECT ON {table} TO {clerk};
GRANT SELECT ON {ours[alembic_version]} TO {clerk};
GRANT SELECT ON {ours[watched_table]} TO {clerk};
GRANT UPDATE (answer_version) ON {ours[watched_table]} TO {clerk};
GRANT SELECT ON {ours[fingerprint]} TO {clerk};
GRANT SELECT ON {ours[pair]} TO {clerk};
GRANT SELECT ON {ours[band]} TO {clerk};
GRANT SELECT ON {ours[sketch_index]} TO {clerk};
GRANT SELECT ON {ours[sketch_segment]} TO {clerk};
GRANT SELECT, INSERT, UPDATE, DELETE ON {ours[verdict]} TO {clerk};
GRANT SELECT ON {ours[frame_list]} TO {clerk};
GRANT SELECT ON {ours[scan]} TO {clerk};
GRANT SELECT, INSERT, DELETE ON {ours[reservation]} TO {clerk};
GRANT SELECT ON {ours[group_change]} TO {clerk};
GRANT SELECT, INSERT ON {ours[change]} TO {clerk};
GRANT SELECT ON {ours[dead_change]} TO {clerk};
GRANT SELECT ON {ours[duplicate_groups]} TO {clerk};
GRANT SELECT ON {ours[duplicate_members]} TO {clerk};

-- The reader: no command, it reads the views in SQL.
GRANT SELECT ON {ours[duplicate_pairs]} TO {reader};
GRANT SELECT ON {ours[duplicate_groups]} TO {reader};
GRANT SELECT ON {ours[duplicate_members]} TO {reader};
GRANT SELECT ON {ours[queue_lag]} TO {reader};
GRANT CREATE, SELECT ON {view} TO {reader};
