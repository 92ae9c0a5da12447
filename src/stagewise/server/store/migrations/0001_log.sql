-- The log: one row for every request, outcome and change. Rows are never changed or deleted.
CREATE TABLE events (
    number INTEGER NOT NULL PRIMARY KEY,  -- drawn from one sequence, after the row was chosen
    at INTEGER NOT NULL,       -- microseconds since 1970
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    decision INTEGER NOT NULL, -- the number of an outcome's decision; otherwise -1
    body BLOB NOT NULL,        -- canonical JSON
    mac BLOB NOT NULL,         -- the code of this row and all before it of the same writer
    request_digest BLOB NOT NULL,  -- the digest of the client's request
    seen INTEGER NOT NULL,     -- the highest number that was visible when the row was chosen
    writer TEXT NOT NULL,
    link INTEGER NOT NULL,     -- 1, 2, 3, … of its writer
    experiment TEXT NOT NULL,
    CONSTRAINT chosen_before_numbered CHECK (seen < number)
) STRICT;
CREATE UNIQUE INDEX events_by_key ON events (experiment, kind, key);
-- Decisions and outcomes are dense in a log; rare kinds need an index.
CREATE INDEX events_by_kind ON events (experiment, kind, number) WHERE kind NOT IN ('decision', 'outcome');

-- The order of the rows: by seal, then by number.
CREATE TABLE seals (
    seal INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    term INTEGER NOT NULL,
    size INTEGER NOT NULL,     -- number of rows
    high INTEGER NOT NULL,     -- the highest number so far
    open BLOB NOT NULL,        -- the numbers below it that may still be committed
    root BLOB NOT NULL,        -- of the Merkle tree over its rows
    hash BLOB NOT NULL         -- of this seal and the one before it
) STRICT;

-- The rows of each experiment in a seal.
CREATE TABLE seal_parts (
    experiment TEXT NOT NULL,
    last INTEGER NOT NULL,     -- the place of the last row in its experiment
    first INTEGER NOT NULL,
    seal INTEGER NOT NULL,
    decisions INTEGER NOT NULL,
    at INTEGER NOT NULL,
    highest INTEGER NOT NULL,
    numbers BLOB NOT NULL,
    PRIMARY KEY (experiment, last)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX seal_parts_by_seal ON seal_parts (seal, experiment);

-- The reported signals of each decision, as in the rows of its outcomes.
CREATE TABLE answers (
    decision INTEGER NOT NULL, -- the number of the decision
    signal TEXT NOT NULL,
    value REAL NOT NULL,
    number INTEGER NOT NULL,   -- the row of the outcome
    PRIMARY KEY (decision, signal)
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
