-- locks: none
-- Hooks of accounts, to which providers report; and the events that they reported. A token is known by its digest. A row is the raw event,
-- the work, and the memory that it came, until retention removes it: waiting (0), leased (1), applied (2), ignored (3), unmatched (4),
-- dead (5). due_at is set exactly while it waits to be taken; once is set where a signature may be used a single time.
CREATE TABLE provider_hook (
    tenant     TEXT    NOT NULL,
    account    TEXT    NOT NULL,
    provider   TEXT    NOT NULL,
    token      BLOB    NOT NULL,
    settings   TEXT    NOT NULL,
    secret     BLOB,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, account)
) WITHOUT ROWID;
CREATE UNIQUE INDEX provider_hook_token ON provider_hook (token);

-- A rowid table: its leaves hold whole events, an index tree's do not.
CREATE TABLE provider_event (
    uid         BLOB    NOT NULL,
    tenant      TEXT    NOT NULL,
    account     TEXT    NOT NULL,
    provider    TEXT    NOT NULL,
    digest      BLOB    NOT NULL,
    once        BLOB,
    raw         BLOB    NOT NULL,
    state       INTEGER NOT NULL,
    due_at      INTEGER,
    tries       INTEGER NOT NULL,
    lost_leases INTEGER NOT NULL,
    lease_node  BLOB,
    lease_token INTEGER,
    lease_until INTEGER,
    kind        TEXT,
    message     BLOB,
    error       TEXT,
    created_at  INTEGER NOT NULL,
    settled_at  INTEGER,
    PRIMARY KEY (uid)
);
CREATE UNIQUE INDEX provider_event_digest ON provider_event (digest);
CREATE UNIQUE INDEX provider_event_once ON provider_event (once) WHERE once IS NOT NULL;
CREATE INDEX provider_event_due ON provider_event (tenant, account, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX provider_event_lease ON provider_event (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX provider_event_account ON provider_event (tenant, account, uid);
CREATE INDEX provider_event_state ON provider_event (tenant, account, state, uid);
CREATE INDEX provider_event_tenant ON provider_event (tenant, uid);
