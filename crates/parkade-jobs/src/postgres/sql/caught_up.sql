(SELECT id FROM parkade.ended WHERE state IN (4, 5) AND ended >= $1::int8 ORDER BY ended LIMIT 10000)
UNION ALL
(SELECT id FROM parkade.ended WHERE state = 6 AND ended >= $1::int8 LIMIT 10000)
