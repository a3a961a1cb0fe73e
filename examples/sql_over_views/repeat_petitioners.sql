-- Who repeats themselves? One name or telephone several times in a group, or in several groups (matters).
-- A name alone is no person: people share names, and offices mask them.
SELECT
    known_by,
    who,
    COUNT(*) AS petitions,
    COUNT(DISTINCT group_id) AS matters,
    COUNT(*) - COUNT(DISTINCT group_id) AS repeats
FROM (
    SELECT 'name' AS known_by, petitioner AS who, group_id FROM dedup_duplicates_of_petitions
    UNION ALL
    SELECT 'phone' AS known_by, phone AS who, group_id FROM dedup_duplicates_of_petitions
) AS sent
WHERE who IS NOT NULL
GROUP BY known_by, who
HAVING COUNT(*) > 1
ORDER BY petitions DESC, repeats DESC, known_by, who
LIMIT 20;
