-- locks: none
-- Hooks of accounts, to which providers report; and the events that they reported. A token is known by its digest. A row is the raw event,
-- the work, and the memory that it came, until retention removes it: waiting (0), leased (1), applied (2), ignored (3), unmatched (4),
-- dead (5). due_at is set exactly while it waits to be taken; once is set where a signature may be used a single time.
CREATE TABLE provider_hook (
    tenant     TEXT COLLATE "C" NOT NULL,
    account    TEXT COLLATE "C" NOT NULL,
    provider   TEXT    NOT NULL,
    token      BYTEA    NOT NULL,
    settings   TEXT    NOT NULL,
    secret     BYTEA,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, account)
);
CREATE UNIQUE INDEX provider_hook_token ON provider_hook (token);

CREATE TABLE provider_event (
    uid         BYTEA    NOT NULL,
    tenant      TEXT COLLATE "C" NOT NULL,
    account     TEXT COLLATE "C" NOT NULL,
    provider    TEXT    NOT NULL,
    digest      BYTEA    NOT NULL,
    once        BYTEA,
    raw         BYTEA    NOT NULL,
    state       BIGINT NOT NULL,
    due_at      BIGINT,
    tries       BIGINT NOT NULL,
    lost_leases BIGINT NOT NULL,
    lease_node  BYTEA,
    lease_token BIGINT,
    lease_until BIGINT,
    kind        TEXT,
    message     BYTEA,
    error       TEXT,
    created_at  BIGINT NOT NULL,
    settled_at  BIGINT,
    PRIMARY KEY (uid)
);
CREATE UNIQUE INDEX provider_event_digest ON provider_event (digest);
CREATE UNIQUE INDEX provider_event_once ON provider_event (once) WHERE once IS NOT NULL;
CREATE INDEX provider_event_due ON provider_event (tenant, account, due_at, uid) WHERE due_at IS NOT NULL;
CREATE INDEX provider_event_lease ON provider_event (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX provider_event_account ON provider_event (tenant, account, uid);
CREATE INDEX provider_event_state ON provider_event (tenant, account, state, uid);
CREATE INDEX provider_event_tenant ON provider_event (tenant, uid);
