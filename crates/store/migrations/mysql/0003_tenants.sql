-- Tenants' settings, keys, pauses, limits, suppressions, and who changed what. Written so that it can be run again, in
-- words that MySQL and MariaDB share.
SET @add_columns = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'tenant' AND column_name = 'settings') = 0,
    'ALTER TABLE tenant ADD COLUMN settings LONGTEXT, ADD COLUMN secret BLOB, ADD COLUMN weight BIGINT NOT NULL DEFAULT 100, ADD COLUMN version BIGINT NOT NULL DEFAULT 1, ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN deleted_at BIGINT',
    'DO 0');
PREPARE add_columns FROM @add_columns;
EXECUTE add_columns;
DEALLOCATE PREPARE add_columns;

CREATE TABLE IF NOT EXISTS api_key (
    id           VARCHAR(64) NOT NULL PRIMARY KEY,
    tenant       VARCHAR(64) NOT NULL,
    name         TEXT NOT NULL,
    digest       BINARY(32) NOT NULL UNIQUE,
    scopes       TEXT NOT NULL,
    networks     TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    KEY api_key_tenant (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What is paused: a tenant (0), a batch (1), an account (2). The code is empty for a tenant.
CREATE TABLE IF NOT EXISTS suspension (
    tenant VARCHAR(64) NOT NULL,
    kind   BIGINT NOT NULL,
    code   VARCHAR(128) NOT NULL,
    since  BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, code)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Addresses in lower case that get no mail.
CREATE TABLE IF NOT EXISTS suppression (
    tenant     VARCHAR(64) NOT NULL,
    address    VARBINARY(512) NOT NULL,
    reason     BIGINT NOT NULL,
    note       TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant, address),
    KEY suppression_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit (
    id         BINARY(16) NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    actor      TEXT NOT NULL,
    tenant     VARCHAR(64),
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,
    request_id TEXT,
    detail     TEXT,
    KEY audit_tenant (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Accounts at fault, and until when they are left alone.
CREATE TABLE IF NOT EXISTS circuit (
    tenant     VARCHAR(64) NOT NULL,
    account    VARCHAR(64) NOT NULL,
    code       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    opened_at  BIGINT NOT NULL,
    open_until BIGINT NOT NULL,
    faults     BIGINT NOT NULL,
    PRIMARY KEY (tenant, account)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What an account has used of its limits: minute (1), hour (2), day (3), each in small buckets of time. The row of span 0
-- is the account's lock.
CREATE TABLE IF NOT EXISTS spent (
    tenant  VARCHAR(64) NOT NULL,
    account VARCHAR(64) NOT NULL,
    span    BIGINT NOT NULL,
    bucket  BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    PRIMARY KEY (tenant, account, span, bucket)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The latest message of each collapse key, and the one before it.
CREATE TABLE IF NOT EXISTS collapse (
    tenant   VARCHAR(64) NOT NULL,
    name     VARBINARY(512) NOT NULL,
    uid      BINARY(16) NOT NULL,
    previous BINARY(16),
    PRIMARY KEY (tenant, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
