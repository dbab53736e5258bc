-- locks: none
-- Streams, a tenant's named kinds of mail, and suppressions that are narrower or wider than a tenant's list: of one stream, of a
-- pattern of addresses, or, where the tenant is empty, of the whole installation. An empty stream stands for all of them.
CREATE TABLE stream (
    tenant             TEXT NOT NULL,
    id                 TEXT NOT NULL,
    name               TEXT NOT NULL,
    description        TEXT,
    unsubscribe        INTEGER NOT NULL,
    unsubscribe_mailto TEXT,
    version            INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE TABLE scoped_suppression (
    tenant     TEXT NOT NULL,
    pattern    TEXT NOT NULL,
    stream     TEXT NOT NULL,
    reason     INTEGER NOT NULL,
    note       TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant, pattern, stream)
) WITHOUT ROWID;
CREATE INDEX scoped_suppression_expiry ON scoped_suppression (expires_at) WHERE expires_at IS NOT NULL;
