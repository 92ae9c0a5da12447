-- The log: one row for everything that was asked, answered or changed. Rows are added, and never changed or deleted.
CREATE TABLE events (
    experiment text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,       -- 1, 2, 3, … in its experiment
    at bigint NOT NULL,        -- microseconds since 1970
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    place bigint NOT NULL,     -- a decision's number, an outcome's decision's; -1: neither
    body bytea NOT NULL,       -- canonical JSON
    chain bytea NOT NULL,      -- the digest of this row and all before it
    asked bytea NOT NULL,      -- the digest of what a client sent; no part of the chain
    PRIMARY KEY (experiment, seq)
);
CREATE UNIQUE INDEX events_by_key ON events (experiment, kind, key);
-- Decisions are never far from each other in a log; what is rare is found by this.
CREATE INDEX events_by_kind ON events (experiment, kind, seq) WHERE kind <> 'decision';

-- Where each log ends.
CREATE TABLE heads (
    experiment text COLLATE "C" NOT NULL PRIMARY KEY,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    places bigint NOT NULL,
    control bigint NOT NULL,
    chain bytea NOT NULL
);

-- Which signals are known of a decision: what the rows of its outcomes say, where it can be found.
CREATE TABLE answers (
    experiment text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    signal text COLLATE "C" NOT NULL,
    value double precision NOT NULL,
    seq bigint NOT NULL,       -- the row that told it
    PRIMARY KEY (experiment, place, signal)
);

-- What can be made again from the log.
CREATE TABLE snapshots (
    experiment text COLLATE "C" NOT NULL,
    problem bigint NOT NULL,
    seq bigint NOT NULL,
    content bytea NOT NULL,
    whole bytea NOT NULL,
    PRIMARY KEY (experiment, problem, seq)
);

-- What is no part of what was decided.
CREATE TABLE access_keys (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    digest bytea NOT NULL,
    role text COLLATE "C" NOT NULL,
    note text COLLATE "C" NOT NULL,
    made bigint NOT NULL,
    revoked bigint
);
CREATE TABLE secrets (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    content bytea NOT NULL
);
