WITH beaten AS (
    UPDATE parkade.boots SET seen = clock_timestamp() WHERE boot = $1::uuid
    RETURNING floor(extract(epoch FROM seen) * 1000)::int8 AS seen
), lost AS (
    DELETE FROM parkade.boots WHERE boot = ANY (ARRAY(
        SELECT boot FROM parkade.boots
         WHERE abs(extract(epoch FROM clock_timestamp() - seen)) * 1000 > $2::int8 AND boot <> $1::uuid
           -- `own.seen` is this server's previous heartbeat. If the clock has jumped since, it is as old as those of the others.
           -- If it is not the one that this server knows ($3), this statement is late or a reply was lost: no server is declared lost.
           AND EXISTS (SELECT FROM parkade.boots own
                        WHERE own.boot = $1::uuid AND abs(extract(epoch FROM clock_timestamp() - own.seen)) * 1000 < $2::int8
                          AND floor(extract(epoch FROM own.seen) * 1000)::int8 = $3::int8)
         FOR UPDATE SKIP LOCKED))
    RETURNING boot
)
SELECT EXISTS (SELECT FROM beaten) AS is_known, (SELECT count(*) FROM lost) AS lost,
       coalesce((SELECT seen FROM beaten), floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
