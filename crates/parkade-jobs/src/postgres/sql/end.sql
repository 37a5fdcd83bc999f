WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), given AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::int8[], $5::int2[], $6::int8[], $7::bytea[], $8::text[], $9::bool[])
           WITH ORDINALITY AS g (id, boot, claim, verdict, wait, result, error, is_again, place)
), gone AS (
    -- Only a job that this claim took: a later claim may have the same attempt.
    DELETE FROM parkade.running r USING given g
     WHERE r.id = g.id AND r.boot = g.boot AND r.claim = g.claim
    RETURNING r.id, r.seq, r.queue, r.rank, r.priority, r.size, r.attempt, r.due, r.started, r.boot, r.is_counted,
              g.verdict, g.wait, g.result, g.error, g.place
), over AS (
    INSERT INTO parkade.ended (id, seq, queue, state, attempt, boot, due, started, ended, result)
    -- 3 is an unknown job: its attempt does not count.
    SELECT id, seq, queue, verdict, CASE verdict WHEN 3 THEN attempt - 1 ELSE attempt END, boot, due, started, now, result
      FROM gone, clock WHERE verdict >= 3
), failed AS (
    INSERT INTO parkade.errors (id, error) SELECT id, error FROM gone WHERE error IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET error = excluded.error
), freed AS (
    DELETE FROM parkade.keys k USING gone g WHERE k.id = g.id AND g.verdict >= 4
), again AS (
    -- 1 is handed back: it keeps its place. 0 is tried again when its time comes.
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started)
    SELECT id, seq, queue, CASE verdict WHEN 1 THEN rank ELSE now - priority * 30000::int8 END, priority, size,
           CASE verdict WHEN 1 THEN attempt - 1 ELSE attempt END, CASE verdict WHEN 1 THEN due ELSE now + wait END, started
      FROM gone, clock WHERE verdict = 1 OR verdict = 0 AND wait <= 0
), later AS (
    INSERT INTO parkade.scheduled (id, seq, queue, priority, size, attempt, due, started)
    SELECT id, seq, queue, priority, size, attempt, now + wait, started FROM gone, clock WHERE verdict = 0 AND wait > 0
), told AS (
    -- A notification has room for 8,000 bytes.
    SELECT pg_notify('parkade_job_ended', $10::text || ' ' || string_agg(id::text, ' '))
      FROM gone WHERE verdict >= 4 GROUP BY place / 200
), rung AS (
    SELECT pg_notify('parkade_jobs', $10::text) WHERE EXISTS (SELECT FROM gone WHERE verdict = 1)
), vacated AS (
    -- Another server may be waiting for the place.
    SELECT pg_notify('parkade_jobs', $10::text || ' vacated') WHERE EXISTS (SELECT FROM gone WHERE is_counted)
)
SELECT place, is_counted, false AS is_unclear FROM gone
 WHERE (SELECT count(*) FROM told) + (SELECT count(*) FROM rung) + (SELECT count(*) FROM vacated) >= 0
UNION ALL
-- Outcomes that are sent again because the reply was lost. All tables are seen as they were when the statement began.
SELECT g.place, true, r.id IS NOT NULL
  FROM given g LEFT JOIN parkade.running r ON r.id = g.id AND r.boot = g.boot AND r.claim = g.claim
 WHERE g.is_again AND g.place NOT IN (SELECT place FROM gone)
   -- Still running then, and no longer: the first statement, or a rescue, has been committed since.
   AND (r.id IS NOT NULL
        -- A member loses a job only by its outcome. A cancellation may have replaced another outcome, which counted.
        OR g.verdict <> 5 AND EXISTS (SELECT FROM parkade.boots b WHERE b.boot = g.boot)
        OR EXISTS (SELECT FROM parkade.ended e WHERE e.id = g.id AND e.boot = g.boot AND e.state = g.verdict))
