WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), it AS MATERIALIZED (
    SELECT e.id, e.seq, e.queue, e.state, b.name, b.key, b.priority, octet_length(b.arguments) AS size
      FROM parkade.ended e JOIN parkade.bodies b ON b.id = e.id WHERE e.id = $2::uuid FOR UPDATE OF e
), keyed AS (
    INSERT INTO parkade.keys (name, key, id) SELECT name, key, id FROM it WHERE key IS NOT NULL AND state <> 3
    ON CONFLICT DO NOTHING RETURNING id
), gone AS (
    DELETE FROM parkade.ended
     WHERE id IN (SELECT id FROM it WHERE key IS NULL OR state = 3 OR EXISTS (SELECT FROM keyed)) RETURNING id
), back AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt)
    SELECT it.id, it.seq, it.queue, clock.now - it.priority * 30000::int8, it.priority, it.size, 0
      FROM it JOIN gone ON gone.id = it.id, clock
), forgiven AS (
    DELETE FROM parkade.errors WHERE id IN (SELECT id FROM gone)
), rung AS (
    SELECT pg_notify('parkade_jobs', $3::text) FROM gone
)
SELECT (SELECT count(*) FROM rung) > 0 AS changed, false AS is_there
