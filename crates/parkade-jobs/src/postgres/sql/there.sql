WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
)
SELECT g.place, coalesce(b.id, k.id) AS id, s.due - clock.now AS wait
  FROM clock, unnest($2::uuid[], $3::text[], $4::text[]) WITH ORDINALITY AS g (id, name, key, place)
  LEFT JOIN parkade.bodies b ON b.id = g.id
  LEFT JOIN parkade.keys k ON k.name = g.name AND k.key = g.key AND b.id IS NULL
  LEFT JOIN parkade.scheduled s ON s.id = coalesce(b.id, k.id)
