-- The tables of version 1, as the program of then made them.
-- Made, and brought up to date, by whoever comes first; the others wait for the lock and find it done.
DO $parkade$
DECLARE
    found int;
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
    IF found > 1 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'PKJ01',
            MESSAGE = format('the jobs in this database were written by a newer parkade (version %s of their tables, this one knows 1): install that one, or give another database', found);
    END IF;
    IF found < 1 THEN
        -- What was enqueued: never written again. `seq` is the order of insertion. Times are milliseconds since 1970.
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
        -- Each job has a row in exactly one of these four; rows move, and only the last changes.
        -- `rank` is when it became ready, less half a minute for each step of priority.
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
        -- 3 unknown, 4 completed, 5 cancelled, 6 dead.
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
        -- Of those that have not ended.
        CREATE TABLE parkade.keys (
            name text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            id uuid NOT NULL,
            PRIMARY KEY (name, key)
        );
        CREATE INDEX keys_id ON parkade.keys (id);
        -- The servers that live. No claim of theirs counts that is not above `fence`.
        CREATE TABLE parkade.boots (boot uuid PRIMARY KEY, seen timestamptz NOT NULL, fence int8 NOT NULL DEFAULT 0);
        CREATE TABLE parkade.recurring (name text COLLATE "C" PRIMARY KEY, last int8 NOT NULL);
        UPDATE parkade.version SET version = 1;
    END IF;
END
$parkade$
