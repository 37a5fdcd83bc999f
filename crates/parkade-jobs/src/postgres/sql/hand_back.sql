-- Of a claim whose answer was lost: nobody runs them.
WITH gone AS (
    DELETE FROM parkade.running WHERE boot = $1::uuid AND claim = $2::int8
    RETURNING id, seq, queue, rank, priority, size, attempt - 1, due, started
), back AS (
    INSERT INTO parkade.ready (id, seq, queue, rank, priority, size, attempt, due, started) SELECT * FROM gone
)
SELECT count(*) AS handed_back FROM gone
