-- What share of the petitions repeats an earlier one, by channel?
SELECT
    COALESCE(channel, '-') AS channel,
    SUM(petitions) AS petitions,
    SUM(repeats) AS repeats,
    ROUND(100.0 * SUM(repeats) / SUM(petitions), 1) AS percent
FROM (
    SELECT channel, COUNT(*) AS petitions, 0 AS repeats
    FROM petitions
    GROUP BY channel
    UNION ALL
    SELECT channel, 0 AS petitions, COUNT(*) AS repeats
    FROM dedup_duplicates_of_petitions
    WHERE NOT is_representative
    GROUP BY channel
) AS counted
GROUP BY counted.channel
ORDER BY repeats DESC, petitions DESC, channel
LIMIT 20;
