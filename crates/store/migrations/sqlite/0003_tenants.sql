-- Tenants' settings, keys, pauses, limits, suppressions, and who changed what.
ALTER TABLE tenant ADD COLUMN settings TEXT;
ALTER TABLE tenant ADD COLUMN secret BLOB;
ALTER TABLE tenant ADD COLUMN weight INTEGER NOT NULL DEFAULT 100;
ALTER TABLE tenant ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tenant ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN deleted_at INTEGER;

CREATE TABLE api_key (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    digest       BLOB    NOT NULL UNIQUE,
    scopes       TEXT    NOT NULL,
    networks     TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) WITHOUT ROWID;
CREATE INDEX api_key_tenant ON api_key (tenant, id);

-- What is paused: a tenant (0), a batch (1), an account (2). The code is empty for a tenant.
CREATE TABLE suspension (
    tenant TEXT    NOT NULL,
    kind   INTEGER NOT NULL,
    code   TEXT    NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, code)
) WITHOUT ROWID;

-- Addresses in lower case that get no mail.
CREATE TABLE suppression (
    tenant     TEXT    NOT NULL,
    address    TEXT    NOT NULL,
    reason     INTEGER NOT NULL,
    note       TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant, address)
) WITHOUT ROWID;
CREATE INDEX suppression_expiry ON suppression (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE audit (
    id         BLOB    NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    tenant     TEXT,
    action     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    request_id TEXT,
    detail     TEXT
) WITHOUT ROWID;
CREATE INDEX audit_tenant ON audit (tenant, id);

-- Accounts at fault, and until when they are left alone.
CREATE TABLE circuit (
    tenant     TEXT    NOT NULL,
    account    TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL,
    open_until INTEGER NOT NULL,
    faults     INTEGER NOT NULL,
    PRIMARY KEY (tenant, account)
) WITHOUT ROWID;

-- What an account has used of its limits: minute (1), hour (2), day (3), each in small buckets of time. The row of span 0
-- is the account's lock.
CREATE TABLE spent (
    tenant  TEXT    NOT NULL,
    account TEXT    NOT NULL,
    span    INTEGER NOT NULL,
    bucket  INTEGER NOT NULL,
    used    INTEGER NOT NULL,
    PRIMARY KEY (tenant, account, span, bucket)
) WITHOUT ROWID;

-- The latest message of each collapse key, and the one before it.
CREATE TABLE collapse (
    tenant   TEXT NOT NULL,
    name     TEXT NOT NULL,
    uid      BLOB NOT NULL,
    previous BLOB,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
