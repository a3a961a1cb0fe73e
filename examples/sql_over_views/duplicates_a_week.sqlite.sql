-- How many petitions of each week, by its Monday, repeat an earlier one? The last twelve weeks that had any petitions.
SELECT
    DATE(p.created_at, 'weekday 0', '-6 days') AS week,
    COUNT(*) AS petitions,
    COUNT(CASE WHEN NOT d.is_representative THEN 1 END) AS repeats,
    ROUND(100.0 * COUNT(CASE WHEN NOT d.is_representative THEN 1 END) / COUNT(*), 1) AS percent
FROM petitions AS p
LEFT JOIN dedup_duplicates_of_petitions AS d ON d.id = p.id
GROUP BY week
ORDER BY week DESC
LIMIT 12;
