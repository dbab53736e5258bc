-- locks: none
-- Tokens by which accounts and mailboxes sign in, sealed, as all nodes share them; and until when one node has their renewal to
-- itself. They change by the hour, which is no change of the account.
CREATE TABLE IF NOT EXISTS oauth_state (
    tenant         VARCHAR(64) NOT NULL,
    owner          VARCHAR(80) NOT NULL,
    tokens         BLOB,
    renewing_until BIGINT,
    version        BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
