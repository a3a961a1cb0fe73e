-- What share of the petitions repeats an earlier one, by region?
SELECT
    COALESCE(region, '-') AS region,
    SUM(petitions) AS petitions,
    SUM(repeats) AS repeats,
    ROUND(100.0 * SUM(repeats) / SUM(petitions), 1) AS percent
FROM (
    SELECT region, COUNT(*) AS petitions, 0 AS repeats
    FROM petitions
    GROUP BY region
    UNION ALL
    SELECT region, 0 AS petitions, COUNT(*) AS repeats
    FROM dedup_duplicates_of_petitions
    WHERE NOT is_representative
    GROUP BY region
) AS counted
GROUP BY counted.region
ORDER BY repeats DESC, petitions DESC, region
LIMIT 20;
