-- locks: short
-- People: who may do what, with their roles, tenants and ways to sign in, and the sessions of their browsers.
CREATE TABLE gateway_user (
    id           BYTEA NOT NULL PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL UNIQUE,
    display_name TEXT COLLATE "C" NOT NULL,
    email        TEXT COLLATE "C",
    role         BIGINT NOT NULL,
    tenants      TEXT COLLATE "C",
    read_content BIGINT NOT NULL,
    issuer       TEXT COLLATE "C",
    subject      TEXT COLLATE "C",
    credentials  TEXT COLLATE "C" NOT NULL,
    disabled_at  BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    version      BIGINT NOT NULL
);
CREATE UNIQUE INDEX gateway_user_identity ON gateway_user (issuer, subject);
CREATE INDEX gateway_user_email ON gateway_user (email);

CREATE TABLE user_session (
    id       BYTEA NOT NULL PRIMARY KEY,
    user_id  BYTEA NOT NULL,
    began_at BIGINT NOT NULL,
    ends_at  BIGINT NOT NULL,
    seen_at  BIGINT NOT NULL,
    way      TEXT COLLATE "C" NOT NULL,
    address  TEXT COLLATE "C",
    agent    TEXT COLLATE "C"
);
CREATE INDEX user_session_user ON user_session (user_id, id);
CREATE INDEX user_session_end ON user_session (ends_at);

-- Who made a key; empty for keys of older versions.
ALTER TABLE api_key ADD COLUMN created_by TEXT COLLATE "C";

-- The audit log as a chain: each line has a position and the digest of itself and the line before. What it is about is digested with a
-- salt, so that an erased address is no fault of the chain and cannot be guessed from its digest. Lines of older versions have none of it.
ALTER TABLE audit ADD COLUMN position BIGINT;
ALTER TABLE audit ADD COLUMN previous BYTEA;
ALTER TABLE audit ADD COLUMN digest BYTEA;
ALTER TABLE audit ADD COLUMN salt BYTEA;
ALTER TABLE audit ADD COLUMN target_digest BYTEA;
CREATE UNIQUE INDEX audit_position ON audit (position);

-- The last line of the chain, and the last one that retention has removed: the chain goes on from there.
CREATE TABLE audit_head (
    id       BIGINT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    digest   BYTEA NOT NULL,
    trimmed  BIGINT NOT NULL
);
INSERT INTO audit_head (id, position, digest, trimmed) VALUES (1, 0, decode(repeat('00', 32), 'hex'), 0);
