WITH ready AS (
    DELETE FROM parkade.ready WHERE id = $1::uuid RETURNING id
), scheduled AS (
    DELETE FROM parkade.scheduled WHERE id = $1::uuid RETURNING id
), ended AS (
    DELETE FROM parkade.ended WHERE id = $1::uuid RETURNING id
), gone AS (
    SELECT id FROM ready UNION ALL SELECT id FROM scheduled UNION ALL SELECT id FROM ended
), body AS (
    DELETE FROM parkade.bodies WHERE id IN (SELECT id FROM gone)
), error AS (
    DELETE FROM parkade.errors WHERE id IN (SELECT id FROM gone)
), freed AS (
    DELETE FROM parkade.keys WHERE id IN (SELECT id FROM gone)
), told AS (
    -- Clients that wait for it on other servers learn that it no longer exists.
    SELECT pg_notify('parkade_job_ended', $2::text || ' ' || id::text) FROM gone
)
SELECT (SELECT count(*) FROM told) > 0 AS changed,
       EXISTS (SELECT FROM parkade.ready WHERE id = $1::uuid) OR EXISTS (SELECT FROM parkade.scheduled WHERE id = $1::uuid)
       OR EXISTS (SELECT FROM parkade.ended WHERE id = $1::uuid) AS is_there
