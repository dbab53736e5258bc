-- Tenants, accounts, and the queue. Integers are 64-bit, times are UTC milliseconds, ids are 16 bytes. Text that is
-- compared is compared byte by byte, whatever the locale of the database.

CREATE TABLE tenant (
    id              TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    name            TEXT   NOT NULL,
    default_account TEXT   COLLATE "C",
    created_at      BIGINT NOT NULL
);

CREATE TABLE account (
    tenant     TEXT   COLLATE "C" NOT NULL REFERENCES tenant (id),
    id         TEXT   COLLATE "C" NOT NULL,
    settings   TEXT   NOT NULL,
    secret     BYTEA,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- What a claim chooses among. The id is a digest of the other columns, so every node makes the same one.
CREATE TABLE lane (
    id       BYTEA  NOT NULL PRIMARY KEY,
    tenant   TEXT   COLLATE "C" NOT NULL,
    account  TEXT   COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    batch    TEXT   COLLATE "C"
);
CREATE INDEX lane_account ON lane (tenant, account);

-- The hot table: queue columns only. due_at is set exactly while a message waits to be claimed.
-- Every message is updated a few times and then rests: vacuum by count, because a share of all of them comes too late.
CREATE TABLE message (
    uid            BYTEA   NOT NULL PRIMARY KEY,
    tenant         TEXT    COLLATE "C" NOT NULL,
    lane           BYTEA   NOT NULL,
    status         BIGINT  NOT NULL,
    wait           BIGINT,
    due_at         BIGINT,
    attempt        BIGINT  NOT NULL,
    retries        BIGINT  NOT NULL,
    doubts         BIGINT  NOT NULL,
    lost_leases    BIGINT  NOT NULL,
    on_doubt       BIGINT  NOT NULL,
    lease_node     BYTEA,
    lease_token    BIGINT,
    lease_until    BIGINT,
    wire_committed BOOLEAN NOT NULL,
    version        BIGINT  NOT NULL,
    event_seq      BIGINT  NOT NULL,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL,
    expires_at     BIGINT,
    sent_at        BIGINT,
    failed_at      BIGINT,
    exhausted      BOOLEAN NOT NULL,
    error          TEXT
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
-- Holds due work only, so that a claim costs the same whatever lies in the table.
CREATE INDEX message_due ON message (lane, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX message_status ON message (status, updated_at);
CREATE INDEX message_tenant ON message (tenant, uid);
CREATE INDEX message_lane ON message (lane, uid);
CREATE INDEX message_expiry ON message (expires_at) WHERE expires_at IS NOT NULL AND status < 4;

-- Everything the queue does not need to know. Small bodies stay in the row, none is compressed: they are written once
-- and read once.
CREATE TABLE content (
    uid         BYTEA   NOT NULL PRIMARY KEY,
    client_id   TEXT,
    sender      TEXT    NOT NULL,
    message_id  TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    request_id  TEXT    COLLATE "C",
    external_id TEXT,
    tags        TEXT,
    metadata    TEXT,
    eight_bit   BOOLEAN NOT NULL,
    smtputf8    BOOLEAN NOT NULL,
    size        BIGINT  NOT NULL,
    raw         BYTEA   NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE content ALTER COLUMN raw SET STORAGE EXTERNAL;
CREATE INDEX content_request ON content (request_id) WHERE request_id IS NOT NULL;

-- The address keeps its letters and is found in any case. Room is left in the pages for the one update of each.
CREATE TABLE recipient (
    uid       BYTEA  NOT NULL,
    position  BIGINT NOT NULL,
    kind      BIGINT NOT NULL,
    address   TEXT   COLLATE "C" NOT NULL,
    status    BIGINT NOT NULL,
    smtp_code BIGINT,
    enhanced  TEXT,
    reply     TEXT,
    PRIMARY KEY (uid, position)
) WITH (fillfactor = 70);
CREATE INDEX recipient_address ON recipient (lower(address));

CREATE TABLE event (
    uid  BYTEA  NOT NULL,
    seq  BIGINT NOT NULL,
    at   BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    data TEXT,
    PRIMARY KEY (uid, seq)
);

CREATE TABLE attempt (
    uid                 BYTEA  NOT NULL,
    number              BIGINT NOT NULL,
    started_at          BIGINT NOT NULL,
    duration_ms         BIGINT NOT NULL,
    account             TEXT   NOT NULL,
    remote              TEXT,
    outcome             TEXT   NOT NULL,
    smtp_code           BIGINT,
    enhanced            TEXT,
    reply               TEXT,
    provider_message_id TEXT   COLLATE "C",
    PRIMARY KEY (uid, number)
);
CREATE INDEX attempt_provider ON attempt (provider_message_id) WHERE provider_message_id IS NOT NULL;

CREATE TABLE tag (
    tenant TEXT  COLLATE "C" NOT NULL,
    tag    TEXT  COLLATE "C" NOT NULL,
    uid    BYTEA NOT NULL,
    PRIMARY KEY (tenant, tag, uid)
);

-- Client ids and idempotency keys. expires_at is set when their message is deleted: a tombstone.
CREATE TABLE dedup (
    tenant      TEXT   COLLATE "C" NOT NULL,
    kind        BIGINT NOT NULL,
    key         TEXT   COLLATE "C" NOT NULL,
    fingerprint BYTEA  NOT NULL,
    uid         BYTEA  NOT NULL,
    expires_at  BIGINT,
    PRIMARY KEY (tenant, kind, key)
);
CREATE INDEX dedup_uid ON dedup (uid);

-- How many messages stand where, kept in the transactions that move them. Each writer counts in a shard of its own, so
-- that writers do not wait for each other; only the sum over the shards means something.
CREATE TABLE tally (
    tenant TEXT   COLLATE "C" NOT NULL,
    status BIGINT NOT NULL,
    shard  BIGINT NOT NULL,
    count  BIGINT NOT NULL,
    PRIMARY KEY (tenant, status, shard)
) WITH (fillfactor = 50);
