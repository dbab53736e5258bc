-- locks: none
-- Tokens by which accounts and mailboxes sign in, sealed, as all nodes share them; and until when one node has their renewal to
-- itself. They change by the hour, which is no change of the account.
CREATE TABLE oauth_state (
    tenant         TEXT NOT NULL,
    owner          TEXT NOT NULL,
    tokens         BLOB,
    renewing_until INTEGER,
    version        INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner)
);
