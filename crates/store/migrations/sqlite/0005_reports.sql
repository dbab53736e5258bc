-- Reports: the journal of what happened, who is told, what was told, hours that are counted, traces of what is gone.

-- A page for each transaction that wrote events, and each of its tenants. The position is given after the commit, so that the
-- order of positions is an order in which pages became visible.
CREATE TABLE journal (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    at       INTEGER NOT NULL,
    position INTEGER,
    entries  BLOB NOT NULL
);
CREATE UNIQUE INDEX journal_position ON journal (position);
CREATE INDEX journal_tenant ON journal (tenant, position);

-- How far the journal has come: the last position that was given out, and the last page that notifications were made of.
CREATE TABLE progress (
    name     TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (name)
) WITHOUT ROWID;

INSERT INTO progress (name, position) VALUES ('sequence', 0), ('fan_out', 0);

-- Who is told: webhook (1), callback (2), sync (3). One that is deleted keeps its row until its notifications are gone.
CREATE TABLE subscriber (
    tenant          TEXT NOT NULL,
    id              TEXT NOT NULL,
    kind            INTEGER NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    secrets         BLOB,
    active          INTEGER NOT NULL,
    disabled_reason TEXT,
    description     TEXT,
    quiet_until     INTEGER,
    deleted         INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- An event and who is told of it: pending (0), calling (1), waiting (2), acknowledged (3), dead (4). due_at is set exactly while it
-- is pending or waiting.
CREATE TABLE notification (
    tenant      TEXT NOT NULL,
    subscriber  TEXT NOT NULL,
    uid         BLOB NOT NULL,
    seq         INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    deferred    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    due_at      INTEGER,
    tries       INTEGER NOT NULL,
    lease_node  BLOB,
    lease_token INTEGER,
    lease_until INTEGER,
    created_at  INTEGER NOT NULL,
    settled_at  INTEGER,
    called_at   INTEGER,
    latency_ms  INTEGER,
    status      INTEGER,
    request     TEXT,
    answer      TEXT,
    PRIMARY KEY (tenant, subscriber, uid, seq)
) WITHOUT ROWID;
CREATE INDEX notification_due ON notification (tenant, subscriber, due_at, uid, seq) WHERE due_at IS NOT NULL;
CREATE INDEX notification_message ON notification (uid, seq);
CREATE INDEX notification_lease ON notification (lease_node) WHERE lease_node IS NOT NULL;

-- What each account did in each hour.
CREATE TABLE statistic (
    tenant     TEXT NOT NULL,
    hour       INTEGER NOT NULL,
    account    TEXT NOT NULL,
    accepted   INTEGER NOT NULL,
    sent       INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    invalid    INTEGER NOT NULL,
    deferred   INTEGER NOT NULL,
    bounced    INTEGER NOT NULL,
    complained INTEGER NOT NULL,
    suppressed INTEGER NOT NULL,
    queue_ms   INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour, account)
) WITHOUT ROWID;

-- Traces of messages that are gone.
CREATE TABLE tombstone (
    uid        BLOB NOT NULL,
    tenant     TEXT NOT NULL,
    status     INTEGER NOT NULL,
    recipients BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (uid)
) WITHOUT ROWID;
CREATE INDEX tombstone_expiry ON tombstone (expires_at);

CREATE INDEX dedup_expiry ON dedup (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX collapse_uid ON collapse (uid);
