-- How long after the first petition does a repeated one come?
WITH first AS (
    SELECT group_id, MAX(CASE WHEN is_representative THEN created_at END) AS received_at
    FROM dedup_duplicates_of_petitions
    GROUP BY group_id
), repeated AS (
    SELECT DATEDIFF(again.created_at, first.received_at) AS days
    FROM dedup_duplicates_of_petitions AS again
    JOIN first ON first.group_id = again.group_id
    WHERE NOT again.is_representative
)
SELECT
    CASE
        WHEN days IS NULL THEN 'unknown'
        WHEN days = 0 THEN 'the same day'
        WHEN days <= 7 THEN '1 to 7 days'
        WHEN days <= 30 THEN '8 to 30 days'
        ELSE 'later'
    END AS waited,
    COUNT(*) AS repeats
FROM repeated
GROUP BY waited
ORDER BY MIN(days) IS NULL, MIN(days);
