-- The log: one row for everything that was asked, answered or changed. Rows are added, and never changed or deleted.
CREATE TABLE events (
    experiment TEXT NOT NULL,
    seq INTEGER NOT NULL,      -- 1, 2, 3, … in its experiment
    at INTEGER NOT NULL,       -- microseconds since 1970
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    place INTEGER NOT NULL,    -- a decision's number, an outcome's decision's; -1: neither
    body BLOB NOT NULL,        -- canonical JSON
    chain BLOB NOT NULL,       -- the digest of this row and all before it
    asked BLOB NOT NULL,       -- the digest of what a client sent
    PRIMARY KEY (experiment, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_key ON events (experiment, kind, key);
-- Decisions are never far from each other in a log; what is rare is found by this.
CREATE INDEX events_by_kind ON events (experiment, kind, seq) WHERE kind <> 'decision';

-- Where each log ends.
CREATE TABLE heads (
    experiment TEXT NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    places INTEGER NOT NULL,
    control INTEGER NOT NULL,
    chain BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Which signals are known of a decision: what the rows of its outcomes say, where it can be found.
CREATE TABLE answers (
    experiment TEXT NOT NULL,
    place INTEGER NOT NULL,
    signal TEXT NOT NULL,
    value REAL NOT NULL,
    seq INTEGER NOT NULL,      -- the row that told it
    PRIMARY KEY (experiment, place, signal)
) STRICT, WITHOUT ROWID;

-- What can be made again from the log.
CREATE TABLE snapshots (
    experiment TEXT NOT NULL,
    problem INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    content BLOB NOT NULL,
    whole BLOB NOT NULL,
    PRIMARY KEY (experiment, problem, seq)
) STRICT;

-- What no row may tell; the log of what holds everywhere has a digest of each.
CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
