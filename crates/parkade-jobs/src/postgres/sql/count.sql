SELECT (SELECT count(*) FROM parkade.scheduled) AS scheduled,
       (SELECT count(*) FROM parkade.ready) AS ready,
       (SELECT count(*) FROM parkade.running) AS running,
       (SELECT count(*) FROM parkade.ended WHERE state = 3) AS unknown,
       (SELECT count(*) FROM parkade.ended WHERE state = 4) AS completed,
       (SELECT count(*) FROM parkade.ended WHERE state = 5) AS cancelled,
       (SELECT count(*) FROM parkade.ended WHERE state = 6) AS dead,
       (SELECT min(rank + priority * 30000::int8) FROM parkade.ready) AS oldest,
       (SELECT coalesce(json_agg(json_build_array(queue, depth) ORDER BY queue), '[]')
          FROM (SELECT queue, count(*) AS depth
                  FROM (SELECT queue FROM parkade.ready UNION ALL SELECT queue FROM parkade.scheduled) waiting
                 GROUP BY queue) depths) AS queues
