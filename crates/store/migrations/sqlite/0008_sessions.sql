-- Sessions that were signed out before their time: a copied cookie must not outlive its sign-out on any node.
CREATE TABLE ended_session (
    id      BLOB    NOT NULL PRIMARY KEY,
    ends_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ended_session_end ON ended_session (ends_at);
