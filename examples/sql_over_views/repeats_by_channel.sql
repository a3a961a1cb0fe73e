-- What share of the petitions repeats an earlier one, by channel?
SELECT
    COALESCE(p.channel, '-') AS channel,
    COUNT(*) AS petitions,
    COUNT(CASE WHEN NOT d.is_representative THEN 1 END) AS repeats,
    ROUND(100.0 * COUNT(CASE WHEN NOT d.is_representative THEN 1 END) / COUNT(*), 1) AS percent
FROM petitions AS p
LEFT JOIN dedup_duplicates_of_petitions AS d ON d.id = p.id
GROUP BY COALESCE(p.channel, '-')
ORDER BY repeats DESC, petitions DESC, channel
LIMIT 20;
