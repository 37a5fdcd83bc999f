SELECT g.place, b.name, b.queue, b.key, b.priority, b.arguments, b.enqueued, b.request_id, b.traceparent,
       CASE WHEN s.id IS NOT NULL THEN 0 WHEN r.id IS NOT NULL THEN 1 WHEN n.id IS NOT NULL THEN 2 ELSE e.state END AS state,
       coalesce(s.attempt, r.attempt, n.attempt, e.attempt, 0) AS attempt, coalesce(s.due, r.due, n.due, e.due) AS due,
       coalesce(s.started, r.started, n.started, e.started) AS started, e.ended, e.result, x.error
  FROM unnest($1::uuid[]) WITH ORDINALITY AS g (id, place)
  JOIN parkade.bodies b ON b.id = g.id
  LEFT JOIN parkade.scheduled s ON s.id = g.id
  LEFT JOIN parkade.ready r ON r.id = g.id
  LEFT JOIN parkade.running n ON n.id = g.id
  LEFT JOIN parkade.ended e ON e.id = g.id
  LEFT JOIN parkade.errors x ON x.id = g.id
