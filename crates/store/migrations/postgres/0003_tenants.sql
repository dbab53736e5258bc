-- Tenants' settings, keys, pauses, limits, suppressions, and who changed what.
ALTER TABLE tenant ADD COLUMN settings TEXT;
ALTER TABLE tenant ADD COLUMN secret BYTEA;
ALTER TABLE tenant ADD COLUMN weight BIGINT NOT NULL DEFAULT 100;
ALTER TABLE tenant ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE tenant ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN deleted_at BIGINT;

CREATE TABLE api_key (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    name         TEXT NOT NULL,
    digest       BYTEA NOT NULL UNIQUE,
    scopes       TEXT NOT NULL,
    networks     TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX api_key_tenant ON api_key (tenant, id);

-- What is paused: a tenant (0), a batch (1), an account (2). The code is empty for a tenant.
CREATE TABLE suspension (
    tenant TEXT COLLATE "C" NOT NULL,
    kind   BIGINT NOT NULL,
    code   TEXT COLLATE "C" NOT NULL,
    since  BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, code)
);

-- Addresses in lower case that get no mail.
CREATE TABLE suppression (
    tenant     TEXT COLLATE "C" NOT NULL,
    address    TEXT COLLATE "C" NOT NULL,
    reason     BIGINT NOT NULL,
    note       TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant, address)
);
CREATE INDEX suppression_expiry ON suppression (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE audit (
    id         BYTEA NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    actor      TEXT NOT NULL,
    tenant     TEXT COLLATE "C",
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,
    request_id TEXT,
    detail     TEXT
);
CREATE INDEX audit_tenant ON audit (tenant, id);

-- Accounts at fault, and until when they are left alone.
CREATE TABLE circuit (
    tenant     TEXT COLLATE "C" NOT NULL,
    account    TEXT COLLATE "C" NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    reason     TEXT NOT NULL,
    opened_at  BIGINT NOT NULL,
    open_until BIGINT NOT NULL,
    faults     BIGINT NOT NULL,
    PRIMARY KEY (tenant, account)
);

-- What an account has used of its limits: minute (1), hour (2), day (3), each in small buckets of time. The row of span 0
-- is the account's lock.
CREATE TABLE spent (
    tenant  TEXT COLLATE "C" NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    span    BIGINT NOT NULL,
    bucket  BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    PRIMARY KEY (tenant, account, span, bucket)
) WITH (fillfactor = 50);

-- The latest message of each collapse key, and the one before it.
CREATE TABLE collapse (
    tenant   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    uid      BYTEA NOT NULL,
    previous BYTEA,
    PRIMARY KEY (tenant, name)
);
