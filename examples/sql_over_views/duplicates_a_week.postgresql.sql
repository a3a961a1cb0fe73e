-- How many petitions of each week, by its Monday, repeat an earlier one?
-- The last twelve weeks that had any petitions.
SELECT
    week,
    SUM(petitions) AS petitions,
    SUM(repeats) AS repeats,
    ROUND(100.0 * SUM(repeats) / SUM(petitions), 1) AS percent
FROM (
    SELECT CAST(DATE_TRUNC('week', created_at) AS date) AS week, 1 AS petitions, 0 AS repeats
    FROM petitions
    UNION ALL
    SELECT CAST(DATE_TRUNC('week', created_at) AS date) AS week, 0 AS petitions, 1 AS repeats
    FROM dedup.duplicates_of_petitions
    WHERE NOT is_representative
) AS counted
GROUP BY week
ORDER BY week DESC
LIMIT 12;
