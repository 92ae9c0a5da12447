-- The log: one row for every request, outcome and change. Rows are never changed or deleted.
CREATE TABLE events (
    experiment TEXT NOT NULL,
    seq INTEGER NOT NULL,      -- 1, 2, 3, … in its experiment
    at INTEGER NOT NULL,       -- microseconds since 1970
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    decision_index INTEGER NOT NULL,  -- the number of a decision; of an outcome's decision; otherwise -1
    body BLOB NOT NULL,        -- canonical JSON
    chain BLOB NOT NULL,       -- the digest of this row and all before it
    request_digest BLOB NOT NULL,     -- the digest of the client's request
    PRIMARY KEY (experiment, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_key ON events (experiment, kind, key);
-- Decisions are dense in a log; rare kinds need an index.
CREATE INDEX events_by_kind ON events (experiment, kind, seq) WHERE kind <> 'decision';

-- The end of each log.
CREATE TABLE heads (
    experiment TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    decision_count INTEGER NOT NULL,
    control INTEGER NOT NULL,
    chain BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The reported signals of each decision, as in the rows of its outcomes.
CREATE TABLE answers (
    experiment TEXT NOT NULL,
    decision_index INTEGER NOT NULL,
    signal TEXT NOT NULL,
    value REAL NOT NULL,
    seq INTEGER NOT NULL,      -- the row of the outcome
    PRIMARY KEY (experiment, decision_index, signal)
) STRICT, WITHOUT ROWID;

-- Snapshots, which can be rebuilt from the log.
CREATE TABLE snapshots (
    experiment TEXT NOT NULL,
    problem INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    content BLOB NOT NULL,
    learner_state BLOB NOT NULL,
    PRIMARY KEY (experiment, problem, seq)
) STRICT;

-- Secrets; the global log has the digest of each.
CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
