-- Tenants, accounts, and the queue. Integers are 64-bit, times are UTC milliseconds, ids are 16 bytes.

CREATE TABLE tenant (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    default_account TEXT,
    created_at      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE account (
    tenant     TEXT    NOT NULL REFERENCES tenant (id),
    id         TEXT    NOT NULL,
    settings   TEXT    NOT NULL,
    secret     BLOB,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- What a claim chooses among. The id is a digest of the other columns, so every node makes the same one.
CREATE TABLE lane (
    id       BLOB    NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    account  TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    batch    TEXT
) WITHOUT ROWID;
CREATE INDEX lane_account ON lane (tenant, account);

-- The hot table: queue columns only. due_at is set exactly while a message waits to be claimed.
CREATE TABLE message (
    uid            BLOB    NOT NULL PRIMARY KEY,
    tenant         TEXT    NOT NULL,
    lane           BLOB    NOT NULL,
    status         INTEGER NOT NULL,
    wait           INTEGER,
    due_at         INTEGER,
    attempt        INTEGER NOT NULL,
    retries        INTEGER NOT NULL,
    doubts         INTEGER NOT NULL,
    lost_leases    INTEGER NOT NULL,
    on_doubt       INTEGER NOT NULL,
    lease_node     BLOB,
    lease_token    INTEGER,
    lease_until    INTEGER,
    wire_committed INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    event_seq      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    sent_at        INTEGER,
    failed_at      INTEGER,
    exhausted      INTEGER NOT NULL,
    error          TEXT
) WITHOUT ROWID;
-- Holds due work only, so that a claim costs the same whatever lies in the table.
CREATE INDEX message_due ON message (lane, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX message_status ON message (status, updated_at);
CREATE INDEX message_tenant ON message (tenant, uid);
CREATE INDEX message_lane ON message (lane, uid);
CREATE INDEX message_expiry ON message (expires_at) WHERE expires_at IS NOT NULL AND status < 4;

-- Everything the queue does not need to know. A rowid table: its leaves hold whole bodies, an index tree's do not.
CREATE TABLE content (
    uid         BLOB    NOT NULL UNIQUE,
    client_id   TEXT,
    sender      TEXT    NOT NULL,
    message_id  TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    request_id  TEXT,
    external_id TEXT,
    tags        TEXT,
    metadata    TEXT,
    eight_bit   INTEGER NOT NULL,
    smtputf8    INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    raw         BLOB    NOT NULL
);
CREATE INDEX content_request ON content (request_id) WHERE request_id IS NOT NULL;

CREATE TABLE recipient (
    uid       BLOB    NOT NULL,
    position  INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    address   TEXT    NOT NULL COLLATE NOCASE,
    status    INTEGER NOT NULL,
    smtp_code INTEGER,
    enhanced  TEXT,
    reply     TEXT,
    PRIMARY KEY (uid, position)
) WITHOUT ROWID;
CREATE INDEX recipient_address ON recipient (address);

CREATE TABLE event (
    uid  BLOB    NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    data TEXT,
    PRIMARY KEY (uid, seq)
) WITHOUT ROWID;

CREATE TABLE attempt (
    uid                 BLOB    NOT NULL,
    number              INTEGER NOT NULL,
    started_at          INTEGER NOT NULL,
    duration_ms         INTEGER NOT NULL,
    account             TEXT    NOT NULL,
    remote              TEXT,
    outcome             TEXT    NOT NULL,
    smtp_code           INTEGER,
    enhanced            TEXT,
    reply               TEXT,
    provider_message_id TEXT,
    PRIMARY KEY (uid, number)
) WITHOUT ROWID;
CREATE INDEX attempt_provider ON attempt (provider_message_id) WHERE provider_message_id IS NOT NULL;

CREATE TABLE tag (
    tenant TEXT NOT NULL,
    tag    TEXT NOT NULL,
    uid    BLOB NOT NULL,
    PRIMARY KEY (tenant, tag, uid)
) WITHOUT ROWID;

-- Client ids and idempotency keys. expires_at is set when their message is deleted: a tombstone.
CREATE TABLE dedup (
    tenant      TEXT    NOT NULL,
    kind        INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    uid         BLOB    NOT NULL,
    expires_at  INTEGER,
    PRIMARY KEY (tenant, kind, key)
) WITHOUT ROWID;
CREATE INDEX dedup_uid ON dedup (uid);

-- How many messages stand where, kept in the transactions that move them.
CREATE TABLE tally (
    tenant TEXT    NOT NULL,
    status INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (tenant, status)
) WITHOUT ROWID;
