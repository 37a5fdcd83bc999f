-- Runs after the statement that declared the servers lost, not as a part of it, so that it sees what their last claims took.
WITH gone AS (
    DELETE FROM parkade.running r WHERE NOT EXISTS (SELECT FROM parkade.boots b WHERE b.boot = r.boot)
    RETURNING id, seq, queue, rank, priority, size, attempt, due, started
), back AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started) SELECT * FROM gone
), rung AS (
    SELECT pg_notify('parkade_jobs', $1::text) WHERE EXISTS (SELECT FROM gone)
)
SELECT (SELECT count(*) FROM gone) AS rescued, (SELECT count(*) FROM rung) AS rung
