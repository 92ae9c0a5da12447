-- Keys of users, under which their contexts are kept; destroying one erases them. Not for backups.
CREATE TABLE user_keys (
    id TEXT NOT NULL PRIMARY KEY,
    user_digest BLOB NOT NULL,   -- a code of the user's name under a secret of the store
    content BLOB NOT NULL,
    is_retired INTEGER NOT NULL  -- 1: the user asked for erasure; nothing new is kept under it
) STRICT;
CREATE UNIQUE INDEX user_keys_by_user ON user_keys (user_digest) WHERE is_retired = 0;
CREATE INDEX user_keys_by_digest ON user_keys (user_digest);
