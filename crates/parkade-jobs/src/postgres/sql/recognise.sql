WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), it AS MATERIALIZED (
    SELECT e.id, e.seq, e.queue, e.attempt, e.due, e.started, b.priority, octet_length(b.arguments) AS size
      FROM parkade.ended e JOIN parkade.bodies b ON b.id = e.id
     WHERE e.state = 3 AND b.name = ANY ($2::text[])
     ORDER BY e.seq LIMIT 1000 FOR UPDATE OF e SKIP LOCKED
), gone AS (
    DELETE FROM parkade.ended WHERE id = ANY (ARRAY(SELECT id FROM it))
), back AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started)
    SELECT id, seq, queue, now - priority * 30000::int8, priority, size, attempt, due, started FROM it, clock
), rung AS (
    SELECT pg_notify('parkade_jobs', $3::text) WHERE EXISTS (SELECT FROM it)
)
SELECT (SELECT count(*) FROM rung) > 0 AS changed, (SELECT count(*) FROM it) >= 1000 AS is_there
