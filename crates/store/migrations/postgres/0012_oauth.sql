-- locks: none
-- Tokens by which accounts and mailboxes sign in, sealed, as all nodes share them; and until when one node has their renewal to
-- itself. They change by the hour, which is no change of the account.
CREATE TABLE oauth_state (
    tenant         TEXT NOT NULL,
    owner          TEXT NOT NULL,
    tokens         BYTEA,
    renewing_until BIGINT,
    version        BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, owner)
);
