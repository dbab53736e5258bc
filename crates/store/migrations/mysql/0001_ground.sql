-- Tenants, accounts, and the queue. Integers are 64-bit, times are UTC milliseconds, ids are 16 bytes.
--
-- Names are utf8mb4_bin. Texts of clients' making that are looked up are VARBINARY, because character comparison here
-- ignores trailing spaces. There are no partial indexes: generated columns that are NULL outside the part stand in for
-- them. DDL commits by itself, so every statement can run again after a crash.

CREATE TABLE IF NOT EXISTS tenant (
    id              VARCHAR(64)  NOT NULL,
    name            TEXT         NOT NULL,
    default_account VARCHAR(64),
    created_at      BIGINT       NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS account (
    tenant     VARCHAR(64) NOT NULL,
    id         VARCHAR(64) NOT NULL,
    settings   LONGTEXT    NOT NULL,
    secret     BLOB,
    version    BIGINT      NOT NULL,
    created_at BIGINT      NOT NULL,
    updated_at BIGINT      NOT NULL,
    PRIMARY KEY (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What a claim chooses among. The id is a digest of the other columns, so every node makes the same one.
CREATE TABLE IF NOT EXISTS lane (
    id       BINARY(16)   NOT NULL,
    tenant   VARCHAR(64)  NOT NULL,
    account  VARCHAR(64)  NOT NULL,
    priority BIGINT       NOT NULL,
    batch    VARCHAR(128),
    PRIMARY KEY (id),
    KEY lane_account (tenant, account)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The hot table: queue columns only. due_at is set exactly while a message waits to be claimed.
CREATE TABLE IF NOT EXISTS message (
    uid            BINARY(16)  NOT NULL,
    tenant         VARCHAR(64) NOT NULL,
    lane           BINARY(16)  NOT NULL,
    status         BIGINT      NOT NULL,
    wait           BIGINT,
    due_at         BIGINT,
    attempt        BIGINT      NOT NULL,
    retries        BIGINT      NOT NULL,
    doubts         BIGINT      NOT NULL,
    lost_leases    BIGINT      NOT NULL,
    on_doubt       BIGINT      NOT NULL,
    lease_node     BINARY(16),
    lease_token    BIGINT,
    lease_until    BIGINT,
    wire_committed TINYINT(1)  NOT NULL,
    version        BIGINT      NOT NULL,
    event_seq      BIGINT      NOT NULL,
    created_at     BIGINT      NOT NULL,
    updated_at     BIGINT      NOT NULL,
    expires_at     BIGINT,
    sent_at        BIGINT,
    failed_at      BIGINT,
    exhausted      TINYINT(1)  NOT NULL,
    error          LONGTEXT,
    -- Set while due_at is: so a search by lane meets due work only, and a claim costs the same whatever lies in the
    -- table.
    due_lane       BINARY(16) GENERATED ALWAYS AS (CASE WHEN due_at IS NOT NULL THEN lane END) STORED,
    -- expires_at while the message waits.
    waits_until    BIGINT GENERATED ALWAYS AS (CASE WHEN status < 4 THEN expires_at END) STORED,
    PRIMARY KEY (uid),
    KEY message_due (due_lane, due_at, uid),
    KEY message_status (status, updated_at),
    KEY message_tenant (tenant, uid),
    KEY message_lane (lane, uid),
    KEY message_expiry (waits_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Everything the queue does not need to know.
CREATE TABLE IF NOT EXISTS content (
    uid         BINARY(16) NOT NULL,
    client_id   VARCHAR(128),
    sender      TEXT       NOT NULL,
    message_id  TEXT       NOT NULL,
    subject     MEDIUMTEXT NOT NULL,
    request_id  VARBINARY(1024),
    external_id TEXT,
    tags        LONGTEXT,
    metadata    LONGTEXT,
    eight_bit   TINYINT(1) NOT NULL,
    smtputf8    TINYINT(1) NOT NULL,
    size        BIGINT     NOT NULL,
    raw         LONGBLOB   NOT NULL,
    PRIMARY KEY (uid),
    KEY content_request (request_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS recipient (
    uid       BINARY(16)   NOT NULL,
    position  BIGINT       NOT NULL,
    kind      BIGINT       NOT NULL,
    address   VARCHAR(320) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
    status    BIGINT       NOT NULL,
    smtp_code BIGINT,
    enhanced  TEXT,
    reply     MEDIUMTEXT,
    PRIMARY KEY (uid, position),
    KEY recipient_address (address)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS event (
    uid  BINARY(16) NOT NULL,
    seq  BIGINT     NOT NULL,
    at   BIGINT     NOT NULL,
    kind BIGINT     NOT NULL,
    data LONGTEXT,
    PRIMARY KEY (uid, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS attempt (
    uid                 BINARY(16)  NOT NULL,
    number              BIGINT      NOT NULL,
    started_at          BIGINT      NOT NULL,
    duration_ms         BIGINT      NOT NULL,
    account             VARCHAR(64) NOT NULL,
    remote              TEXT,
    outcome             TEXT        NOT NULL,
    smtp_code           BIGINT,
    enhanced            TEXT,
    reply               MEDIUMTEXT,
    provider_message_id VARBINARY(1024),
    PRIMARY KEY (uid, number),
    KEY attempt_provider (provider_message_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tag (
    tenant VARCHAR(64)     NOT NULL,
    tag    VARBINARY(1024) NOT NULL,
    uid    BINARY(16)      NOT NULL,
    PRIMARY KEY (tenant, tag, uid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Client ids and idempotency keys. expires_at is set when their message is deleted: a tombstone.
CREATE TABLE IF NOT EXISTS dedup (
    tenant      VARCHAR(64)    NOT NULL,
    kind        BIGINT         NOT NULL,
    `key`       VARBINARY(512) NOT NULL,
    fingerprint BINARY(32)     NOT NULL,
    uid         BINARY(16)     NOT NULL,
    expires_at  BIGINT,
    PRIMARY KEY (tenant, kind, `key`),
    KEY dedup_uid (uid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How many messages stand where, kept in the transactions that move them. Every writer counts in a shard of its own, so
-- that writers do not wait for each other; the sum over shards is the count.
CREATE TABLE IF NOT EXISTS tally (
    tenant  VARCHAR(64) NOT NULL,
    status  BIGINT      NOT NULL,
    shard   BIGINT      NOT NULL,
    `count` BIGINT      NOT NULL,
    PRIMARY KEY (tenant, status, shard)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
