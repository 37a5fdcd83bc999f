WITH RECURSIVE clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
), held AS MATERIALIZED (
    -- A server that declares this one lost waits until this claim is committed, and sees what it took.
    SELECT boot FROM parkade.boots WHERE boot = $2::uuid AND fence < $3::int8 FOR SHARE
), promoted AS (
    DELETE FROM parkade.scheduled
     WHERE EXISTS (SELECT FROM held) AND ctid = ANY (ARRAY(
            SELECT s.ctid FROM parkade.scheduled s WHERE s.due <= (SELECT now FROM clock)
             ORDER BY s.due, s.seq LIMIT 1000 FOR UPDATE SKIP LOCKED))
    RETURNING id, seq, queue, due - priority * 30000::int8 AS rank, priority, size, attempt, due, started
), queues (queue) AS (
    -- Finds the queues with one step in the index for each, however many jobs they have.
    (SELECT queue FROM parkade.ready ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT r.queue FROM parkade.ready r WHERE r.queue > q.queue ORDER BY r.queue LIMIT 1)
      FROM queues q WHERE q.queue IS NOT NULL
), bounds AS MATERIALIZED (
    -- Asks once what the bounds leave to all servers: before jobs are picked, and only for queues that have bounds and may give jobs.
    SELECT q.queue, coalesce(l.allowed, 2147483647) AS allowed, l.places, l.period, l.capacity,
           CASE WHEN l.allowed > 0 AND (l.places IS NOT NULL OR l.period IS NOT NULL) AND $4::int4 > 0 AND EXISTS (SELECT FROM held)
                THEN parkade.room(q.queue, $10::uuid[], l.places, l.period, l.capacity, $1::int8) END AS room
      FROM (SELECT queue FROM queues WHERE queue IS NOT NULL UNION SELECT queue FROM promoted) q
      LEFT JOIN unnest($5::text[], $6::int4[], $7::int4[], $8::float8[], $9::int4[])
             AS l (queue, allowed, places, period, capacity) ON l.queue = q.queue
), limits AS MATERIALIZED (
    SELECT queue, places, period, capacity, room,
           CASE WHEN (room).is_contended THEN 0 ELSE least(allowed, (room).places, (room).tokens) END AS allowed
      FROM bounds
), heads AS (
    SELECT h.*
      FROM limits CROSS JOIN LATERAL (
            SELECT r.ctid AS place, r.* FROM parkade.ready r
             WHERE r.queue = limits.queue
             ORDER BY r.rank, r.seq LIMIT least($4::int4, limits.allowed) FOR UPDATE SKIP LOCKED) h
     WHERE EXISTS (SELECT FROM held)
), candidates AS MATERIALIZED (
    SELECT place, id, seq, queue, rank, priority, size, attempt, due, started FROM heads
    UNION ALL
    SELECT NULL::tid, id, seq, queue, rank, priority, size, attempt, due, started FROM promoted
), numbered AS (
    SELECT c.*, l.allowed, l.places IS NOT NULL AS is_counted, row_number() OVER (PARTITION BY c.queue ORDER BY c.rank, c.seq) AS number
      FROM candidates c JOIN limits l ON l.queue = c.queue
), ranked AS (
    SELECT n.*, row_number() OVER best AS place_of_all, sum(n.size) OVER best - n.size AS bytes_before
      FROM numbered n WHERE n.number <= n.allowed
    WINDOW best AS (ORDER BY n.rank, n.seq)
), picked AS MATERIALIZED (
    SELECT * FROM ranked WHERE place_of_all <= $4::int4 AND bytes_before < 16777216
), taken AS (
    DELETE FROM parkade.ready WHERE ctid = ANY (ARRAY(SELECT place FROM picked WHERE place IS NOT NULL))
), left_over AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started)
    SELECT id, seq, queue, rank, priority, size, attempt, due, started
      FROM promoted WHERE id NOT IN (SELECT id FROM picked)
), begun AS (
    INSERT INTO parkade.running (id, seq, queue, rank, priority, size, attempt, due, started, boot, claim, is_counted)
    SELECT id, seq, queue, rank, priority, size, attempt + 1, due, clock.now, $2::uuid, $3::int8, is_counted FROM picked, clock
), per_queue AS (
    SELECT l.*, p.picked, p.from_ready
      FROM limits l CROSS JOIN LATERAL (
            SELECT count(p.id) AS picked, count(p.place) AS from_ready FROM picked p WHERE p.queue = l.queue) p
), spent AS (
    -- No other server changes it meanwhile: it was read under the lock, which is held until this is committed.
    INSERT INTO parkade.rates (queue, full_at)
    SELECT queue, (room).full_at + picked * period FROM per_queue WHERE picked > 0 AND (room).full_at IS NOT NULL
    ON CONFLICT (queue) DO UPDATE SET full_at = excluded.full_at
), head AS (
    SELECT clock.now,
           EXISTS (SELECT FROM held) AS is_held,
           -- Includes jobs that another server has locked right now.
           EXISTS (SELECT FROM per_queue q
                    WHERE q.allowed > q.picked
                      AND ((SELECT count(*) FROM (SELECT FROM parkade.ready r WHERE r.queue = q.queue
                                                   ORDER BY r.rank, r.seq LIMIT q.from_ready + 1) x) > q.from_ready
                           OR EXISTS (SELECT FROM promoted m
                                       WHERE m.queue = q.queue AND m.id NOT IN (SELECT id FROM picked)))) AS more,
           -- Other servers have the last places, so there is no room until one of their jobs ends.
           EXISTS (SELECT FROM per_queue q WHERE (q.room).places < q.places AND q.picked >= (q.room).places) AS is_full,
           least(CASE WHEN (SELECT count(*) FROM promoted) >= 1000 THEN clock.now
                      ELSE (SELECT s.due FROM parkade.scheduled s WHERE s.due > (SELECT now FROM clock)
                             ORDER BY s.due LIMIT 1) END,
                 (SELECT min(CASE WHEN (q.room).is_contended THEN clock.now + contended_ms
                                  WHEN q.picked >= (q.room).tokens
                                  THEN greatest(ceil((q.room).full_at + (q.picked - q.capacity + 1) * q.period)::int8, clock.now + 1) END)
                    FROM per_queue q)) AS next
      FROM clock
)
SELECT head.now, head.is_held, head.more, head.is_full, head.next, p.id, b.name, p.queue, p.attempt + 1 AS attempt, b.arguments,
       b.request_id, b.traceparent
  FROM head LEFT JOIN picked p ON true LEFT JOIN parkade.bodies b ON b.id = p.id
 ORDER BY p.rank, p.seq
