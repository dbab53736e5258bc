-- locks: none
-- Hooks of accounts, to which providers report; and the events that they reported. A token is known by its digest. A row is the raw event,
-- the work, and the memory that it came, until retention removes it: waiting (0), leased (1), applied (2), ignored (3), unmatched (4),
-- dead (5). due_at is set exactly while it waits to be taken; once is set where a signature may be used a single time.
CREATE TABLE IF NOT EXISTS provider_hook (
    tenant     VARCHAR(64) NOT NULL,
    account    VARCHAR(64) NOT NULL,
    provider   VARCHAR(16) NOT NULL,
    token      BINARY(32) NOT NULL,
    settings   TEXT NOT NULL,
    secret     BLOB,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, account),
    UNIQUE KEY provider_hook_token (token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS provider_event (
    uid         BINARY(16) NOT NULL,
    tenant      VARCHAR(64) NOT NULL,
    account     VARCHAR(64) NOT NULL,
    provider    VARCHAR(16) NOT NULL,
    digest      BINARY(32) NOT NULL,
    once        BINARY(32),
    raw         LONGBLOB NOT NULL,
    state       BIGINT NOT NULL,
    due_at      BIGINT,
    tries       BIGINT NOT NULL,
    lost_leases BIGINT NOT NULL,
    lease_node  BINARY(16),
    lease_token BIGINT,
    lease_until BIGINT,
    kind        VARCHAR(32),
    message     BINARY(16),
    error       TEXT,
    created_at  BIGINT NOT NULL,
    settled_at  BIGINT,
    PRIMARY KEY (uid),
    UNIQUE KEY provider_event_digest (digest),
    UNIQUE KEY provider_event_once (once),
    KEY provider_event_due (tenant, account, due_at, uid),
    KEY provider_event_lease (lease_node),
    KEY provider_event_account (tenant, account, uid),
    KEY provider_event_state (tenant, account, state, uid),
    KEY provider_event_tenant (tenant, uid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
