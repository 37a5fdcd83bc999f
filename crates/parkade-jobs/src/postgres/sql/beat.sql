WITH beaten AS (
    UPDATE parkade.boots SET seen = clock_timestamp() WHERE boot = $1::uuid RETURNING boot
), lost AS (
    DELETE FROM parkade.boots WHERE boot = ANY (ARRAY(
        SELECT boot FROM parkade.boots
         WHERE seen < clock_timestamp() - $2::int8 * interval '1 millisecond' AND boot <> $1::uuid AND $3::bool
         FOR UPDATE SKIP LOCKED))
    RETURNING boot
)
SELECT EXISTS (SELECT FROM beaten) AS is_known, (SELECT count(*) FROM lost) AS lost,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now
