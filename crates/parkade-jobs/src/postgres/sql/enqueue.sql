given AS MATERIALIZED (
    SELECT g.*, clock.now + g.wait AS due, clock.now
      FROM clock, unnest($2::uuid[], $3::text[], $4::text[], $5::int2[], $6::text[], $7::int8[], $8::bytea[],
                         $9::text[], $10::text[])
           WITH ORDINALITY AS g (id, name, queue, priority, key, wait, arguments, request_id, traceparent, place)
), keyed AS (
    -- A job is inserted only if it gets its key. Keys are inserted in the order of the index, so that two servers do not deadlock.
    INSERT INTO parkade.keys (name, key, id)
    SELECT DISTINCT ON (name, key) name, key, id
      FROM given
     WHERE key IS NOT NULL AND may_begin AND NOT EXISTS (SELECT FROM parkade.bodies b WHERE b.id = given.id)
     ORDER BY name, key, place
    ON CONFLICT DO NOTHING
    RETURNING id
), fresh AS (
    INSERT INTO parkade.bodies (id, name, queue, priority, key, arguments, due, enqueued, request_id, traceparent)
    SELECT id, name, queue, priority, key, arguments, due, now, request_id, traceparent
      FROM given
     WHERE (key IS NULL OR id IN (SELECT id FROM keyed)) AND may_begin
     ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING id, seq, queue, priority, octet_length(arguments) AS size, due, enqueued
), readied AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due)
    SELECT id, seq, queue, enqueued - priority * 30000::int8, priority, size, 0, due
      FROM fresh WHERE due IS NULL OR due <= enqueued
    RETURNING id
), later AS (
    INSERT INTO parkade.scheduled (id, seq, queue, priority, size, attempt, due)
    SELECT id, seq, queue, priority, size, 0, due FROM fresh WHERE due > enqueued
), rung AS (
    SELECT pg_notify('parkade_jobs', $11::text) WHERE EXISTS (SELECT FROM readied)
)
