-- Mail that comes in: mailboxes that are watched, their mail, rules and contacts; and what it says about mail that went out. Written so
-- that it can be run again, in words that MySQL and MariaDB share.

-- place is the digest of host, username and folder, because the three do not fit into an index everywhere.
CREATE TABLE IF NOT EXISTS mailbox (
    tenant     VARCHAR(64) NOT NULL,
    id         VARCHAR(64) NOT NULL,
    place      BINARY(32) NOT NULL,
    settings   LONGTEXT NOT NULL,
    secret     BLOB,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE KEY mailbox_place (tenant, place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How far each was read. A row of its own: it changes with every page, its mailbox hardly ever. That of a deleted mailbox stays
-- until the rest of it is gone.
CREATE TABLE IF NOT EXISTS mailbox_state (
    tenant       VARCHAR(64) NOT NULL,
    mailbox      VARCHAR(64) NOT NULL,
    uid_validity BIGINT,
    last_uid     BIGINT,
    not_before   BIGINT,
    old_through  BIGINT,
    uid_next     BIGINT,
    scanned_at   BIGINT,
    error        TEXT,
    error_since  BIGINT,
    deleted      BIGINT NOT NULL,
    PRIMARY KEY (tenant, mailbox)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS rule (
    tenant     VARCHAR(64) NOT NULL,
    id         VARCHAR(64) NOT NULL,
    mailbox    VARCHAR(64) NOT NULL,
    position   BIGINT NOT NULL,
    active     BIGINT NOT NULL,
    content    LONGTEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    KEY rule_mailbox (tenant, mailbox, position, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- name_key is what names are compared by, cut to what an index can hold by its digest.
CREATE TABLE IF NOT EXISTS contact (
    tenant     VARCHAR(64) NOT NULL,
    id         VARCHAR(64) NOT NULL,
    name       TEXT NOT NULL,
    name_key   BINARY(32) NOT NULL,
    addresses  LONGTEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE KEY contact_name (tenant, name_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Mail of watched mailboxes: received (0), routing (1), routed (2), no_match (3), gone (4), waiting (5), dead (6). due_at is set exactly
-- while it waits to be taken, also for a reminder. What was read is known by its digest, what could not be read by its place.
CREATE TABLE IF NOT EXISTS inbound (
    uid          BINARY(16) NOT NULL,
    tenant       VARCHAR(64) NOT NULL,
    mailbox      VARCHAR(64) NOT NULL,
    folder       TEXT NOT NULL,
    uid_validity BIGINT NOT NULL,
    imap_uid     BIGINT NOT NULL,
    digest       BINARY(32),
    size         BIGINT NOT NULL,
    arrived_at   BIGINT,
    sender       TEXT,
    recipients   TEXT,
    subject      TEXT,
    message_id   TEXT,
    state        BIGINT NOT NULL,
    due_at       BIGINT,
    tries        BIGINT NOT NULL,
    lease_node   BINARY(16),
    lease_token  BIGINT,
    lease_until  BIGINT,
    error        TEXT,
    kind         VARCHAR(64),
    result       LONGTEXT,
    tags         LONGTEXT,
    follow_up    VARCHAR(64),
    reminders    BIGINT NOT NULL,
    event_seq    BIGINT NOT NULL,
    resolved_at  BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    settled_at   BIGINT,
    PRIMARY KEY (uid),
    KEY inbound_place (tenant, mailbox, uid_validity, imap_uid),
    KEY inbound_due (due_at),
    KEY inbound_mailbox_due (tenant, mailbox, due_at, uid),
    KEY inbound_lease (lease_node),
    KEY inbound_tenant (tenant, uid),
    KEY inbound_state (tenant, state, uid),
    KEY inbound_mailbox (tenant, mailbox, uid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The bytes, in a table of their own: the row of a mail changes as it is dealt with.
CREATE TABLE IF NOT EXISTS inbound_body (
    uid      BINARY(16) NOT NULL,
    size     BIGINT NOT NULL,
    raw      LONGBLOB NOT NULL,
    raw_blob VARCHAR(80),
    PRIMARY KEY (uid),
    KEY inbound_body_blob (raw_blob)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What was sent because of a mail.
CREATE TABLE IF NOT EXISTS inbound_message (
    uid     BINARY(16) NOT NULL,
    rule    VARCHAR(64) NOT NULL,
    message BINARY(16) NOT NULL,
    PRIMARY KEY (uid, rule, message)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What a mailbox has had, by the digest of its bytes: kept as long as the mailbox, so that nothing is dealt with twice.
CREATE TABLE IF NOT EXISTS inbound_seen (
    tenant  VARCHAR(64) NOT NULL,
    mailbox VARCHAR(64) NOT NULL,
    digest  BINARY(32) NOT NULL,
    PRIMARY KEY (tenant, mailbox, digest)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Receipts of certified mail, with their messages.
CREATE TABLE IF NOT EXISTS pec_receipt (
    uid       BINARY(16) NOT NULL,
    digest    BINARY(32) NOT NULL,
    inbound   BINARY(16) NOT NULL,
    kind      TEXT NOT NULL,
    address   TEXT,
    at        BIGINT NOT NULL,
    signature VARCHAR(64) NOT NULL,
    detail    LONGTEXT NOT NULL,
    size      BIGINT NOT NULL,
    raw       LONGBLOB NOT NULL,
    raw_blob  VARCHAR(80),
    PRIMARY KEY (uid, digest),
    KEY pec_receipt_blob (raw_blob)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Certified mail whose first receipt has not come.
CREATE TABLE IF NOT EXISTS pec_wait (
    uid    BINARY(16) NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (uid),
    KEY pec_wait_due (due_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What became of a recipient after it was sent.
SET @add_columns = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'recipient' AND column_name = 'outcome') = 0,
    'ALTER TABLE recipient ADD COLUMN outcome BIGINT, ADD COLUMN bounce LONGTEXT', 'DO 0');
PREPARE add_columns FROM @add_columns;
EXECUTE add_columns;
DEALLOCATE PREPARE add_columns;
