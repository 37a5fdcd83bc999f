-- The tables of version 1, as the program of then made them.
CREATE TABLE jobs (
    job INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    state INTEGER NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    due INTEGER,
    enqueued INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    name TEXT NOT NULL,
    key TEXT,
    arguments BLOB,
    error TEXT,
    result BLOB
) STRICT;
CREATE TABLE bodies (job INTEGER PRIMARY KEY, arguments BLOB NOT NULL) STRICT;
CREATE TABLE claims (claim INTEGER PRIMARY KEY, started INTEGER NOT NULL, jobs BLOB NOT NULL) STRICT;
CREATE TABLE counts (
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE schedules (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX jobs_id ON jobs (id);
CREATE UNIQUE INDEX jobs_key ON jobs (name, key) WHERE key IS NOT NULL AND state < 4;
CREATE INDEX jobs_scheduled ON jobs (due) WHERE state = 0;
CREATE INDEX jobs_ready ON jobs (queue, priority, rank) WHERE state = 1;
CREATE INDEX jobs_unknown ON jobs (name) WHERE state = 3;
CREATE INDEX jobs_over ON jobs (ended) WHERE state = 4 OR state = 5;
CREATE INDEX jobs_dead ON jobs (ended) WHERE state = 6;
PRAGMA application_id = 0x504b4a42;
PRAGMA user_version = 1;
