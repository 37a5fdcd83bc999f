WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), old AS MATERIALIZED (
    SELECT id FROM parkade.ended WHERE state IN (4, 5) AND ended <= (SELECT now FROM clock) - $2::int8
     ORDER BY ended LIMIT 2000 FOR UPDATE SKIP LOCKED
), too_many AS MATERIALIZED (
    -- Rows that stay are not locked: a lock is written to each row.
    SELECT id FROM parkade.ended WHERE id = ANY (ARRAY(
        SELECT id FROM parkade.ended WHERE state IN (4, 5) ORDER BY ended DESC, seq DESC OFFSET $3::int8 LIMIT 2000))
       FOR UPDATE SKIP LOCKED
), it AS MATERIALIZED (
    SELECT id FROM old UNION SELECT id FROM too_many
), gone AS (
    DELETE FROM parkade.ended WHERE id = ANY (ARRAY(SELECT id FROM it))
), body AS (
    DELETE FROM parkade.bodies WHERE id = ANY (ARRAY(SELECT id FROM it))
), error AS (
    DELETE FROM parkade.errors WHERE id = ANY (ARRAY(SELECT id FROM it))
)
SELECT (SELECT count(*) FROM it) >= 2000 AS more
