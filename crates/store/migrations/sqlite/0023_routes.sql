-- locks: none
-- Routes, which choose the account of mail that names none, and the dialogue with the relay of each message's last failed attempt.
CREATE TABLE route (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    position   INTEGER NOT NULL,
    active     INTEGER NOT NULL,
    content    TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE TABLE dialogue (
    uid     BLOB NOT NULL PRIMARY KEY,
    attempt INTEGER NOT NULL,
    content TEXT NOT NULL
) WITHOUT ROWID;
