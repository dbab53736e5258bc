-- Mail that comes in: mailboxes that are watched, their mail, rules and contacts; and what it says about mail that went out.

-- place is the digest of host, username and folder, because the three do not fit into an index everywhere.
CREATE TABLE mailbox (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    place      BYTEA NOT NULL,
    settings   TEXT NOT NULL,
    secret     BYTEA,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX mailbox_place ON mailbox (tenant, place);

-- How far each was read. A row of its own: it changes with every page, its mailbox hardly ever. That of a deleted mailbox stays
-- until the rest of it is gone.
CREATE TABLE mailbox_state (
    tenant       TEXT COLLATE "C" NOT NULL,
    mailbox      TEXT COLLATE "C" NOT NULL,
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
);

CREATE TABLE rule (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    mailbox    TEXT COLLATE "C" NOT NULL,
    position   BIGINT NOT NULL,
    active     BIGINT NOT NULL,
    content    TEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX rule_mailbox ON rule (tenant, mailbox, position, id);

-- name_key is what names are compared by, cut to what an index can hold by its digest.
CREATE TABLE contact (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    name       TEXT NOT NULL,
    name_key   BYTEA NOT NULL,
    addresses  TEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX contact_name ON contact (tenant, name_key);

-- Mail of watched mailboxes: received (0), routing (1), routed (2), no_match (3), gone (4), waiting (5), dead (6). due_at is set exactly
-- while it waits to be taken, also for a reminder. What was read is known by its digest, what could not be read by its place.
CREATE TABLE inbound (
    uid          BYTEA NOT NULL,
    tenant       TEXT COLLATE "C" NOT NULL,
    mailbox      TEXT COLLATE "C" NOT NULL,
    folder       TEXT NOT NULL,
    uid_validity BIGINT NOT NULL,
    imap_uid     BIGINT NOT NULL,
    digest       BYTEA,
    size         BIGINT NOT NULL,
    arrived_at   BIGINT,
    sender       TEXT,
    recipients   TEXT,
    subject      TEXT,
    message_id   TEXT,
    state        BIGINT NOT NULL,
    due_at       BIGINT,
    tries        BIGINT NOT NULL,
    lease_node   BYTEA,
    lease_token  BIGINT,
    lease_until  BIGINT,
    error        TEXT,
    kind         TEXT,
    result       TEXT,
    tags         TEXT,
    follow_up    TEXT,
    reminders    BIGINT NOT NULL,
    event_seq    BIGINT NOT NULL,
    resolved_at  BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    settled_at   BIGINT,
    PRIMARY KEY (uid)
);
CREATE INDEX inbound_place ON inbound (tenant, mailbox, uid_validity, imap_uid) WHERE digest IS NULL;
CREATE INDEX inbound_due ON inbound (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbound_mailbox_due ON inbound (tenant, mailbox, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX inbound_lease ON inbound (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX inbound_tenant ON inbound (tenant, uid);
CREATE INDEX inbound_state ON inbound (tenant, state, uid);
CREATE INDEX inbound_mailbox ON inbound (tenant, mailbox, uid);

-- The bytes, in a table of their own: the row of a mail changes as it is dealt with.
CREATE TABLE inbound_body (
    uid      BYTEA NOT NULL,
    size     BIGINT NOT NULL,
    raw      BYTEA NOT NULL,
    raw_blob TEXT,
    PRIMARY KEY (uid)
);
CREATE INDEX inbound_body_blob ON inbound_body (raw_blob) WHERE raw_blob IS NOT NULL;

-- What was sent because of a mail.
CREATE TABLE inbound_message (
    uid     BYTEA NOT NULL,
    rule    TEXT COLLATE "C" NOT NULL,
    message BYTEA NOT NULL,
    PRIMARY KEY (uid, rule, message)
);

-- What a mailbox has had, by the digest of its bytes: kept as long as the mailbox, so that nothing is dealt with twice.
CREATE TABLE inbound_seen (
    tenant  TEXT COLLATE "C" NOT NULL,
    mailbox TEXT COLLATE "C" NOT NULL,
    digest  BYTEA NOT NULL,
    PRIMARY KEY (tenant, mailbox, digest)
);

-- Receipts of certified mail, with their messages.
CREATE TABLE pec_receipt (
    uid       BYTEA NOT NULL,
    digest    BYTEA NOT NULL,
    inbound   BYTEA NOT NULL,
    kind      TEXT NOT NULL,
    address   TEXT,
    at        BIGINT NOT NULL,
    signature TEXT NOT NULL,
    detail    TEXT NOT NULL,
    size      BIGINT NOT NULL,
    raw       BYTEA NOT NULL,
    raw_blob  TEXT,
    PRIMARY KEY (uid, digest)
);
CREATE INDEX pec_receipt_blob ON pec_receipt (raw_blob) WHERE raw_blob IS NOT NULL;

-- Certified mail whose first receipt has not come.
CREATE TABLE pec_wait (
    uid    BYTEA NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (uid)
);
CREATE INDEX pec_wait_due ON pec_wait (due_at);

-- What became of a recipient after it was sent.
ALTER TABLE recipient ADD COLUMN outcome BIGINT;
ALTER TABLE recipient ADD COLUMN bounce TEXT;
