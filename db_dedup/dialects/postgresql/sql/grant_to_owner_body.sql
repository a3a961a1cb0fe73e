BEGIN
    EXECUTE 'GRANT EXECUTE ON FUNCTION ' || CAST({function_text} AS regprocedure) || ' TO ' || (
        SELECT CAST(relowner AS regrole) FROM pg_class WHERE oid = CAST({table_text} AS regclass)
    );
END
