WITH beaten AS (
    UPDATE parkade.boots SET seen = clock_timestamp() WHERE boot = $1::uuid RETURNING boot
), lost AS (
    DELETE FROM parkade.boots WHERE boot = ANY (ARRAY(
        -- The clock may have jumped: then this server's own last beat is as far away as theirs.
        SELECT boot FROM parkade.boots
         WHERE abs(extract(epoch FROM clock_timestamp() - seen)) * 1000 > $2::int8 AND boot <> $1::uuid AND $3::bool
           AND EXISTS (SELECT FROM parkade.boots own
                        WHERE own.boot = $1::uuid AND abs(extract(epoch FROM clock_timestamp() - own.seen)) * 1000 < $2::int8)
         FOR UPDATE SKIP LOCKED))
    RETURNING boot
)
SELECT EXISTS (SELECT FROM beaten) AS is_known, (SELECT count(*) FROM lost) AS lost,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now
