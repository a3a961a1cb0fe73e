-- Which petitions came most often, and over what time?
SELECT
    r.id,
    r.title,
    r.group_size AS received,
    DATE(MIN(d.created_at)) AS first_received,
    DATE(MAX(d.created_at)) AS last_received
FROM dedup_duplicates_of_petitions AS r
JOIN dedup_duplicates_of_petitions AS d ON d.group_id = r.group_id
WHERE r.is_representative
GROUP BY r.id, r.title, r.group_size
ORDER BY received DESC, r.id
LIMIT 10;
