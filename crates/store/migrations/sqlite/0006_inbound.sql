-- Mail that comes in: mailboxes that are watched, their mail, rules and contacts; and what it says about mail that went out.

-- place is the digest of host, username and folder, because the three do not fit into an index everywhere.
CREATE TABLE mailbox (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    place      BLOB NOT NULL,
    settings   TEXT NOT NULL,
    secret     BLOB,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX mailbox_place ON mailbox (tenant, place);

-- How far each was read. A row of its own: it changes with every page, its mailbox hardly ever. That of a deleted mailbox stays
-- until the rest of it is gone.
CREATE TABLE mailbox_state (
    tenant       TEXT NOT NULL,
    mailbox      TEXT NOT NULL,
    uid_validity INTEGER,
    last_uid     INTEGER,
    not_before   INTEGER,
    old_through  INTEGER,
    uid_next     INTEGER,
    scanned_at   INTEGER,
    error        TEXT,
    error_since  INTEGER,
    deleted      INTEGER NOT NULL,
    PRIMARY KEY (tenant, mailbox)
) WITHOUT ROWID;

CREATE TABLE rule (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    mailbox    TEXT NOT NULL,
    position   INTEGER NOT NULL,
    active     INTEGER NOT NULL,
    content    TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX rule_mailbox ON rule (tenant, mailbox, position, id);

-- name_key is what names are compared by, cut to what an index can hold by its digest.
CREATE TABLE contact (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    name_key   BLOB NOT NULL,
    addresses  TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX contact_name ON contact (tenant, name_key);

-- Mail of watched mailboxes: received (0), routing (1), routed (2), no_match (3), gone (4), waiting (5), dead (6). due_at is set exactly
-- while it waits to be taken, also for a reminder. What was read is known by its digest, what could not be read by its place.
CREATE TABLE inbound (
    uid          BLOB NOT NULL,
    tenant       TEXT NOT NULL,
    mailbox      TEXT NOT NULL,
    folder       TEXT NOT NULL,
    uid_validity INTEGER NOT NULL,
    imap_uid     INTEGER NOT NULL,
    digest       BLOB,
    size         INTEGER NOT NULL,
    arrived_at   INTEGER,
    sender       TEXT,
    recipients   TEXT,
    subject      TEXT,
    message_id   TEXT,
    state        INTEGER NOT NULL,
    due_at       INTEGER,
    tries        INTEGER NOT NULL,
    lease_node   BLOB,
    lease_token  INTEGER,
    lease_until  INTEGER,
    error        TEXT,
    kind         TEXT,
    result       TEXT,
    tags         TEXT,
    follow_up    TEXT,
    reminders    INTEGER NOT NULL,
    event_seq    INTEGER NOT NULL,
    resolved_at  INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    settled_at   INTEGER,
    PRIMARY KEY (uid)
) WITHOUT ROWID;
CREATE INDEX inbound_place ON inbound (tenant, mailbox, uid_validity, imap_uid) WHERE digest IS NULL;
CREATE INDEX inbound_due ON inbound (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbound_mailbox_due ON inbound (tenant, mailbox, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX inbound_lease ON inbound (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX inbound_tenant ON inbound (tenant, uid);
CREATE INDEX inbound_state ON inbound (tenant, state, uid);
CREATE INDEX inbound_mailbox ON inbound (tenant, mailbox, uid);

-- A rowid table: its leaves hold whole bodies, an index tree's do not.
CREATE TABLE inbound_body (
    uid      BLOB NOT NULL,
    size     INTEGER NOT NULL,
    raw      BLOB NOT NULL,
    raw_blob TEXT,
    PRIMARY KEY (uid)
);
CREATE INDEX inbound_body_blob ON inbound_body (raw_blob) WHERE raw_blob IS NOT NULL;

-- What was sent because of a mail.
CREATE TABLE inbound_message (
    uid     BLOB NOT NULL,
    rule    TEXT NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (uid, rule, message)
) WITHOUT ROWID;

-- What a mailbox has had, by the digest of its bytes: kept as long as the mailbox, so that nothing is dealt with twice.
CREATE TABLE inbound_seen (
    tenant  TEXT NOT NULL,
    mailbox TEXT NOT NULL,
    digest  BLOB NOT NULL,
    PRIMARY KEY (tenant, mailbox, digest)
) WITHOUT ROWID;

-- Receipts of certified mail, with their messages. A rowid table for the same reason.
CREATE TABLE pec_receipt (
    uid       BLOB NOT NULL,
    digest    BLOB NOT NULL,
    inbound   BLOB NOT NULL,
    kind      TEXT NOT NULL,
    address   TEXT,
    at        INTEGER NOT NULL,
    signature TEXT NOT NULL,
    detail    TEXT NOT NULL,
    size      INTEGER NOT NULL,
    raw       BLOB NOT NULL,
    raw_blob  TEXT,
    PRIMARY KEY (uid, digest)
);
CREATE INDEX pec_receipt_blob ON pec_receipt (raw_blob) WHERE raw_blob IS NOT NULL;

-- Certified mail whose first receipt has not come.
CREATE TABLE pec_wait (
    uid    BLOB NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (uid)
) WITHOUT ROWID;
CREATE INDEX pec_wait_due ON pec_wait (due_at);

-- What became of a recipient after it was sent.
ALTER TABLE recipient ADD COLUMN outcome INTEGER;
ALTER TABLE recipient ADD COLUMN bounce TEXT;
