-- What each webhook got and will get.
CREATE TABLE webhooks (
    name TEXT NOT NULL PRIMARY KEY,
    state BLOB NOT NULL
) STRICT, WITHOUT ROWID;
