-- The owner: upgrade, uninstall. Run this part before `db-dedup upgrade`, the others after it.
CREATE SCHEMA {schema} AUTHORIZATION {owner};

-- The scanner: scan, verify, worker, retry, schedule, run. CREATE is for the view of the table's rows,
-- which the scanner makes and owns.
GRANT USAGE ON SCHEMA {table_schema} TO {scanner};
GRANT SELECT ON {table} TO {scanner};
GRANT USAGE, CREATE ON SCHEMA {schema} TO {scanner};
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
GRANT SELECT, INSERT, DELETE ON {ours[group_change]} TO {scanner};
GRANT SELECT, INSERT, UPDATE, DELETE ON {ours[change]} TO {scanner};
GRANT SELECT, INSERT, DELETE ON {ours[dead_change]} TO {scanner};
GRANT SELECT ON {ours[duplicate_pairs]} TO {scanner};
GRANT SELECT ON {ours[duplicate_groups]} TO {scanner};
GRANT SELECT ON {ours[duplicate_members]} TO {scanner};
GRANT SELECT ON {ours[queue_lag]} TO {scanner};
GRANT USAGE ON SEQUENCE {ours[watched_table_id_seq]} TO {scanner};
GRANT USAGE ON SEQUENCE {ours[scan_id_seq]} TO {scanner};
GRANT USAGE ON SEQUENCE {ours[fingerprint_id_seq]} TO {scanner};

-- The attacher: attach, detach. It makes triggers that are always enabled, which only the table's owner
-- or a member of that role may do. For a table that was never scanned it also needs INSERT on
-- watched_table and USAGE on its sequence.
GRANT {table_owner} TO {attacher};
GRANT USAGE, CREATE ON SCHEMA {schema} TO {attacher};
GRANT SELECT ON {ours[alembic_version]} TO {attacher};
GRANT SELECT, UPDATE ON {ours[watched_table]} TO {attacher};
GRANT SELECT, INSERT, DELETE ON {ours[change]} TO {attacher};
GRANT SELECT, DELETE ON {ours[dead_change]} TO {attacher};

-- The clerk: pairs, groups, history, explain, label, calibrate, compare, check, export, report, status,
-- sql, serve. Only label and serve need the rights to write: serve for reservations and labels.
GRANT USAGE ON SCHEMA {table_schema} TO {clerk};
GRANT SELECT ON {table} TO {clerk};
GRANT USAGE ON SCHEMA {schema} TO {clerk};
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

-- The reader: no command, it reads the views in SQL. The last line applies only to views that the scanner
-- makes after it: run it before the first scan.
GRANT USAGE ON SCHEMA {schema} TO {reader};
GRANT SELECT ON {ours[duplicate_pairs]} TO {reader};
GRANT SELECT ON {ours[duplicate_groups]} TO {reader};
GRANT SELECT ON {ours[duplicate_members]} TO {reader};
GRANT SELECT ON {ours[queue_lag]} TO {reader};
ALTER DEFAULT PRIVILEGES FOR ROLE {scanner} IN SCHEMA {schema} GRANT SELECT ON TABLES TO {reader};
