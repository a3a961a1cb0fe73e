-- How long after the first petition does a repeated one come?
WITH repeated AS (
    SELECT DATEDIFF(d.created_at, r.created_at) AS days
    FROM dedup_duplicates_of_petitions AS d
    JOIN dedup_duplicates_of_petitions AS r ON r.group_id = d.group_id AND r.is_representative
    WHERE NOT d.is_representative
)
SELECT
    CASE
        WHEN days = 0 THEN 'the same day'
        WHEN days <= 7 THEN '1 to 7 days'
        WHEN days <= 30 THEN '8 to 30 days'
        ELSE 'later'
    END AS waited,
    COUNT(*) AS repeats
FROM repeated
GROUP BY waited
ORDER BY MIN(days);
