(WITH RECURSIVE dedup_byte (rest, made, bytes) AS (
    SELECT {text}, x'', x'{bytes}'
    UNION ALL
    SELECT
        substr(rest, 5),
        CAST(
            made || (
                substr(
                    bytes,
                    16 * instr('0123456789abcdef', substr(rest, 1, 1))
                    + instr('0123456789abcdef', substr(rest, 2, 1)) - 16,
                    1
                )
                || substr(
                    bytes,
                    16 * instr('0123456789abcdef', substr(rest, 3, 1))
                    + instr('0123456789abcdef', substr(rest, 4, 1)) - 16,
                    length(rest) > 2
                )
            ) AS BLOB
        ),
        bytes
    FROM dedup_byte
    WHERE rest <> ''
)
SELECT made FROM dedup_byte WHERE rest = '')
