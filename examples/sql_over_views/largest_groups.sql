-- Which petitions came most often, and over what time?
SELECT
    group_id,
    MAX(CASE WHEN is_representative THEN title END) AS title,
    COUNT(*) AS received,
    DATE(MIN(created_at)) AS first_received,
    DATE(MAX(created_at)) AS last_received
FROM dedup_duplicates_of_petitions
GROUP BY group_id
ORDER BY received DESC, group_id
LIMIT 10;
