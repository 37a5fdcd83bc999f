-- The first server creates or upgrades the tables; the others wait for the lock and find it done.
DO $parkade$
DECLARE
    found int;
    granted record;
    enqueuing text := $enqueue$enqueue_body$enqueue$;
BEGIN
    PERFORM pg_advisory_xact_lock(5785453205117423682);
    IF to_regnamespace('parkade') IS NULL THEN
        CREATE SCHEMA parkade;
    END IF;
    IF to_regclass('parkade.version') IS NULL THEN
        CREATE TABLE parkade.version (version int NOT NULL);
        INSERT INTO parkade.version VALUES (0);
    END IF;
    SELECT version INTO STRICT found FROM parkade.version;
    IF found > 3 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'PKJ01',
            MESSAGE = format('the jobs in this database were written by a newer parkade (version %s of their tables, this one knows 3): install that one, or give another database', found);
    END IF;
    IF found < 1 THEN
        -- Jobs as they were enqueued; a row never changes. `seq` is the order of insertion. Times are milliseconds since 1970.
        CREATE TABLE parkade.bodies (
            id uuid PRIMARY KEY,
            seq int8 GENERATED ALWAYS AS IDENTITY UNIQUE,
            name text COLLATE "C" NOT NULL,
            queue text COLLATE "C" NOT NULL,
            priority int2 NOT NULL,
            key text COLLATE "C",
            arguments bytea NOT NULL,
            due int8,
            enqueued int8 NOT NULL
        );
        -- Each job has a row in exactly one of these four tables. Rows move between them; only rows of the last one change.
        -- `rank` is the time when the job became ready, less half a minute for each step of priority.
        CREATE TABLE parkade.ready (
            id uuid PRIMARY KEY,
            seq int8 NOT NULL,
            queue text COLLATE "C" NOT NULL,
            rank int8 NOT NULL,
            priority int2 NOT NULL,
            size int4 NOT NULL,
            attempt int4 NOT NULL,
            due int8,
            started int8
        ) WITH (autovacuum_vacuum_scale_factor = 0.01);
        CREATE INDEX ready_order ON parkade.ready (queue, rank, seq);
        CREATE TABLE parkade.scheduled (
            id uuid PRIMARY KEY,
            seq int8 NOT NULL,
            queue text COLLATE "C" NOT NULL,
            priority int2 NOT NULL,
            size int4 NOT NULL,
            attempt int4 NOT NULL,
            due int8 NOT NULL,
            started int8
        ) WITH (autovacuum_vacuum_scale_factor = 0.01);
        CREATE INDEX scheduled_due ON parkade.scheduled (due, seq);
        CREATE TABLE parkade.running (
            id uuid PRIMARY KEY,
            seq int8 NOT NULL,
            queue text COLLATE "C" NOT NULL,
            rank int8 NOT NULL,
            priority int2 NOT NULL,
            size int4 NOT NULL,
            attempt int4 NOT NULL,
            due int8,
            started int8 NOT NULL,
            boot uuid NOT NULL,
            claim int8 NOT NULL
        ) WITH (autovacuum_vacuum_scale_factor = 0.01);
        -- `state`: 3 unknown, 4 completed, 5 cancelled, 6 dead.
        CREATE TABLE parkade.ended (
            id uuid PRIMARY KEY,
            seq int8 NOT NULL,
            queue text COLLATE "C" NOT NULL,
            state int2 NOT NULL,
            attempt int4 NOT NULL,
            boot uuid,
            due int8,
            started int8,
            ended int8 NOT NULL,
            result bytea
        );
        CREATE INDEX ended_over ON parkade.ended (ended, seq) WHERE state IN (4, 5);
        CREATE INDEX ended_kept ON parkade.ended (state, seq) WHERE state IN (3, 6);
        CREATE TABLE parkade.errors (id uuid PRIMARY KEY, error text NOT NULL);
        -- The keys of jobs that have not ended.
        CREATE TABLE parkade.keys (
            name text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            id uuid NOT NULL,
            PRIMARY KEY (name, key)
        );
        CREATE INDEX keys_id ON parkade.keys (id);
        -- The servers that are alive. A claim counts only if its number is above its server's `fence`.
        CREATE TABLE parkade.boots (boot uuid PRIMARY KEY, seen timestamptz NOT NULL, fence int8 NOT NULL DEFAULT 0);
        CREATE TABLE parkade.recurring (name text COLLATE "C" PRIMARY KEY, last int8 NOT NULL);
        UPDATE parkade.version SET version = 1;
    END IF;
    IF found < 2 THEN
        -- Bounds of queues apply to all servers together.
        -- `full_at`: the moment from which the queue's bucket of tokens is full, in milliseconds since 1970.
        CREATE TABLE parkade.rates (queue text COLLATE "C" PRIMARY KEY, full_at float8 NOT NULL);
        -- It belongs to the owner of the other tables, whichever role creates it.
        EXECUTE format('ALTER TABLE parkade.rates OWNER TO %s',
            (SELECT relowner::regrole FROM pg_class WHERE oid = 'parkade.running'::regclass));
        FOR granted IN
            -- Roles that may claim jobs get the same rights here.
            SELECT a.privilege_type AS what, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS whom
              FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
             WHERE c.oid = 'parkade.recurring'::regclass AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        LOOP
            EXECUTE format('GRANT %s ON parkade.rates TO %s', granted.what, granted.whom);
        END LOOP;
        -- Whether the attempt counts against the concurrency of its queue. Attempts of servers that do not know this column count, too.
        ALTER TABLE parkade.running ADD COLUMN is_counted bool NOT NULL DEFAULT true;
        CREATE INDEX running_counted ON parkade.running (queue) WHERE is_counted;
        CREATE TYPE parkade.allowance AS (places int4, tokens int4, full_at float8, is_contended bool);
        -- What the bounds of a queue leave. `own`: the boots of the server that asks. `free`: how many jobs may run at a time, less those that
        -- run there. VOLATILE: each of its statements sees what has been committed by then, so what is read under the lock is current.
        CREATE FUNCTION parkade.room(named text, own uuid[], free int4, period float8, capacity int4, told int8)
        RETURNS parkade.allowance LANGUAGE plpgsql VOLATILE AS $room$
        DECLARE
            room parkade.allowance;
            moment float8;
            is_locked bool := false;
        BEGIN
            room.is_contended := false;
            LOOP
                IF free IS NOT NULL THEN
                    SELECT free - count(*) INTO room.places
                      FROM (SELECT FROM parkade.running r
                             WHERE r.queue = named AND r.is_counted AND r.boot <> ALL (own) LIMIT free) others;
                END IF;
                IF period IS NOT NULL THEN
                    moment := coalesce(told, extract(epoch FROM clock_timestamp()) * 1000);
                    SELECT r.full_at INTO room.full_at FROM parkade.rates r WHERE r.queue = named;
                    room.full_at := greatest(room.full_at, moment);
                    IF room.full_at > moment + (capacity + 1) * period THEN
                        -- The clock was put back, or the rate was lower: the bucket is empty now, and begins to fill.
                        room.full_at := moment + capacity * period;
                        UPDATE parkade.rates r SET full_at = room.full_at WHERE r.queue = named AND r.full_at > room.full_at;
                    END IF;
                    -- A rounding error must not cost a token.
                    room.tokens := greatest(floor(capacity - (room.full_at - moment) / period + 0.001), 0);
                END IF;
                -- The lock is needed only where there is room.
                EXIT WHEN is_locked OR room.places = 0 OR room.tokens = 0;
                -- It is not waited for: that would hold up jobs of other queues and this server's heartbeat.
                is_locked := pg_try_advisory_xact_lock(5785453205117423683);
                room.is_contended := NOT is_locked;
                EXIT WHEN room.is_contended;
            END LOOP;
            RETURN room;
        END
        $room$;
        -- The rights on the tables decide who may use it.
        GRANT EXECUTE ON FUNCTION parkade.room TO PUBLIC;
        UPDATE parkade.version SET version = 2;
    END IF;
    IF found < 3 THEN
        -- The request that enqueued a job. NULL in jobs of servers that do not know these columns.
        ALTER TABLE parkade.bodies ADD COLUMN request_id text COLLATE "C", ADD COLUMN traceparent text COLLATE "C";
        UPDATE parkade.version SET version = 3;
    END IF;
    -- For applications that enqueue with a connection of their own. It changes no table, so it belongs to no version. Where the role may not
    -- make it, they enqueue through their server.
    IF (SELECT p.prosrc FROM pg_proc p
         WHERE p.oid = to_regprocedure('parkade.enqueue(uuid, uuid, text, text, int2, int8, bytea, text, text)')
       ) IS DISTINCT FROM enqueuing AND has_schema_privilege('parkade', 'CREATE') AND NOT EXISTS (
        SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = 'parkade' AND p.proname = 'enqueue' AND NOT pg_has_role(p.proowner, 'USAGE')
    ) THEN
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION parkade.enqueue(uuid, uuid, text, text, int2, int8, bytea, text, text)
             RETURNS bool LANGUAGE plpgsql VOLATILE AS %L', enqueuing);
        -- The rights on the tables decide who may use it.
        GRANT EXECUTE ON FUNCTION parkade.enqueue TO PUBLIC;
    END IF;
END
$parkade$
