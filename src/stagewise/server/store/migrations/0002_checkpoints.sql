-- What replaces rows that are gone: the state at a seal, and the ends of the writers' chains (experiment '').
CREATE TABLE checkpoints (
    experiment TEXT NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL,   -- the row of the global log that has its digest
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;
