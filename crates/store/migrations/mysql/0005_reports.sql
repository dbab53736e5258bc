-- Reports: the journal of what happened, who is told, what was told, hours that are counted, traces of what is gone. Written so
-- that it can be run again, in words that MySQL and MariaDB share.

-- A page for each transaction that wrote events, and each of its tenants. The position is given after the commit, so that the
-- order of positions is an order in which pages became visible.
CREATE TABLE IF NOT EXISTS journal (
    id       BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    tenant   VARCHAR(64) NOT NULL,
    at       BIGINT NOT NULL,
    position BIGINT,
    entries  LONGBLOB NOT NULL,
    UNIQUE KEY journal_position (position),
    KEY journal_tenant (tenant, position)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How far the journal has come: the last position that was given out, and the last page that notifications were made of.
CREATE TABLE IF NOT EXISTS progress (
    name     VARCHAR(64) NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

INSERT IGNORE INTO progress (name, position) VALUES ('sequence', 0), ('fan_out', 0);

-- Who is told: webhook (1), callback (2), sync (3). One that is deleted keeps its row until its notifications are gone.
CREATE TABLE IF NOT EXISTS subscriber (
    tenant          VARCHAR(64) NOT NULL,
    id              VARCHAR(64) NOT NULL,
    kind            BIGINT NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    secrets         BLOB,
    active          BIGINT NOT NULL,
    disabled_reason TEXT,
    description     TEXT,
    quiet_until     BIGINT,
    deleted         BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- An event and who is told of it: pending (0), calling (1), waiting (2), acknowledged (3), dead (4). due_at is set exactly while it
-- is pending or waiting.
CREATE TABLE IF NOT EXISTS notification (
    tenant      VARCHAR(64) NOT NULL,
    subscriber  VARCHAR(64) NOT NULL,
    uid         BINARY(16) NOT NULL,
    seq         BIGINT NOT NULL,
    kind        BIGINT NOT NULL,
    deferred    BIGINT NOT NULL,
    state       BIGINT NOT NULL,
    due_at      BIGINT,
    tries       BIGINT NOT NULL,
    lease_node  BINARY(16),
    lease_token BIGINT,
    lease_until BIGINT,
    created_at  BIGINT NOT NULL,
    settled_at  BIGINT,
    called_at   BIGINT,
    latency_ms  BIGINT,
    status      BIGINT,
    request     TEXT,
    answer      TEXT,
    PRIMARY KEY (tenant, subscriber, uid, seq),
    KEY notification_due (tenant, subscriber, due_at, uid, seq),
    KEY notification_message (uid, seq),
    KEY notification_lease (lease_node)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What each account did in each hour.
CREATE TABLE IF NOT EXISTS statistic (
    tenant     VARCHAR(64) NOT NULL,
    hour       BIGINT NOT NULL,
    account    VARCHAR(64) NOT NULL,
    accepted   BIGINT NOT NULL,
    sent       BIGINT NOT NULL,
    failed     BIGINT NOT NULL,
    invalid    BIGINT NOT NULL,
    deferred   BIGINT NOT NULL,
    bounced    BIGINT NOT NULL,
    complained BIGINT NOT NULL,
    suppressed BIGINT NOT NULL,
    queue_ms   BIGINT NOT NULL,
    PRIMARY KEY (tenant, hour, account)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Traces of messages that are gone.
CREATE TABLE IF NOT EXISTS tombstone (
    uid        BINARY(16) NOT NULL,
    tenant     VARCHAR(64) NOT NULL,
    status     BIGINT NOT NULL,
    recipients BLOB NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (uid),
    KEY tombstone_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

SET @add_key = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'dedup' AND index_name = 'dedup_expiry') = 0, 'ALTER TABLE dedup ADD KEY dedup_expiry (expires_at)', 'DO 0');
PREPARE add_key FROM @add_key;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;

SET @add_key = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'collapse' AND index_name = 'collapse_uid') = 0, 'ALTER TABLE collapse ADD KEY collapse_uid (uid)', 'DO 0');
PREPARE add_key FROM @add_key;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;
