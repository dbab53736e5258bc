-- locks: short
-- People: who may do what, with their roles, tenants and ways to sign in, and the sessions of their browsers.
CREATE TABLE gateway_user (
    id           BLOB NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    email        TEXT,
    role         INTEGER NOT NULL,
    tenants      TEXT,
    read_content INTEGER NOT NULL,
    issuer       TEXT,
    subject      TEXT,
    credentials  TEXT NOT NULL,
    disabled_at  INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    version      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX gateway_user_identity ON gateway_user (issuer, subject);
CREATE INDEX gateway_user_email ON gateway_user (email);

CREATE TABLE user_session (
    id       BLOB NOT NULL PRIMARY KEY,
    user_id  BLOB NOT NULL,
    began_at INTEGER NOT NULL,
    ends_at  INTEGER NOT NULL,
    seen_at  INTEGER NOT NULL,
    way      TEXT NOT NULL,
    address  TEXT,
    agent    TEXT
) WITHOUT ROWID;
CREATE INDEX user_session_user ON user_session (user_id, id);
CREATE INDEX user_session_end ON user_session (ends_at);

-- Who made a key; empty for keys of older versions.
ALTER TABLE api_key ADD COLUMN created_by TEXT;

-- The audit log as a chain: each line has a position and the digest of itself and the line before. What it is about is digested with a
-- salt, so that an erased address is no fault of the chain and cannot be guessed from its digest. Lines of older versions have none of it.
ALTER TABLE audit ADD COLUMN position INTEGER;
ALTER TABLE audit ADD COLUMN previous BLOB;
ALTER TABLE audit ADD COLUMN digest BLOB;
ALTER TABLE audit ADD COLUMN salt BLOB;
ALTER TABLE audit ADD COLUMN target_digest BLOB;
CREATE UNIQUE INDEX audit_position ON audit (position);

-- The last line of the chain, and the last one that retention has removed: the chain goes on from there.
CREATE TABLE audit_head (
    id       INTEGER NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL,
    digest   BLOB NOT NULL,
    trimmed  INTEGER NOT NULL
);
INSERT INTO audit_head (id, position, digest, trimmed) VALUES (1, 0, zeroblob(32), 0);
