-- Jobs of a claim whose reply was lost: no server runs them.
WITH gone AS (
    DELETE FROM parkade.running WHERE boot = $1::uuid AND claim = $2::int8
    RETURNING id, seq, queue, rank, priority, size, attempt - 1 AS attempt, due, started, is_counted
), back AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started)
    SELECT id, seq, queue, rank, priority, size, attempt, due, started FROM gone
), vacated AS (
    SELECT pg_notify('parkade_jobs', $1::text || ' vacated') WHERE EXISTS (SELECT FROM gone WHERE is_counted)
)
SELECT (SELECT count(*) FROM gone) AS handed_back, (SELECT count(*) FROM vacated) AS vacated
