WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), ready AS (
    DELETE FROM parkade.ready WHERE id = $2::uuid RETURNING id, seq, queue, attempt, due, started
), scheduled AS (
    DELETE FROM parkade.scheduled WHERE id = $2::uuid RETURNING id, seq, queue, attempt, due, started
), unknown AS (
    UPDATE parkade.ended SET state = 5, ended = (SELECT now FROM clock) WHERE id = $2::uuid AND state = 3 RETURNING id
), over AS (
    INSERT INTO parkade.ended (id, seq, queue, state, attempt, due, started, ended)
    SELECT id, seq, queue, 5, attempt, due, started, now
      FROM (SELECT * FROM ready UNION ALL SELECT * FROM scheduled) waiting, clock
), gone AS (
    SELECT id FROM ready UNION ALL SELECT id FROM scheduled UNION ALL SELECT id FROM unknown
), freed AS (
    DELETE FROM parkade.keys WHERE id IN (SELECT id FROM gone)
), told AS (
    SELECT pg_notify('parkade_job_ended', $3::text || ' ' || id::text) FROM gone
), asked AS (
    -- The server that runs it is asked to end it.
    SELECT pg_notify('parkade_job_cancel', boot::text || ' ' || id::text) FROM parkade.running WHERE id = $2::uuid
)
SELECT (SELECT count(*) FROM told) > 0 AS changed, (SELECT count(*) FROM asked) > 0 AS is_asked,
       -- Another statement moved it meanwhile: it waits or runs.
       EXISTS (SELECT FROM parkade.ready WHERE id = $2::uuid) OR EXISTS (SELECT FROM parkade.scheduled WHERE id = $2::uuid)
       OR EXISTS (SELECT FROM parkade.ended WHERE id = $2::uuid AND state = 3) AS is_there
