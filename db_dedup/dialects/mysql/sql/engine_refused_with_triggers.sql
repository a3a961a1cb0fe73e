-- Only MySQL has the variables and reads what is in the comment.
SELECT engines.engine
FROM information_schema.tables AS found
JOIN information_schema.engines AS engines ON engines.engine = found.engine
WHERE found.table_schema = COALESCE(:schema, DATABASE()) AND found.table_name = :table
AND engines.transactions = 'NO'
AND (FALSE /*!80000 OR (@@GLOBAL.log_bin AND @@GLOBAL.enforce_gtid_consistency = 'ON') */)
