-- locks: none
-- Streams, a tenant's named kinds of mail, and suppressions that are narrower or wider than a tenant's list: of one stream, of a
-- pattern of addresses, or, where the tenant is empty, of the whole installation. An empty stream stands for all of them.
CREATE TABLE stream (
    tenant             TEXT COLLATE "C" NOT NULL,
    id                 TEXT COLLATE "C" NOT NULL,
    name               TEXT NOT NULL,
    description        TEXT,
    unsubscribe        BIGINT NOT NULL,
    unsubscribe_mailto TEXT,
    version            BIGINT NOT NULL,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE scoped_suppression (
    tenant     TEXT COLLATE "C" NOT NULL,
    pattern    TEXT COLLATE "C" NOT NULL,
    stream     TEXT COLLATE "C" NOT NULL,
    reason     BIGINT NOT NULL,
    note       TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant, pattern, stream)
);
CREATE INDEX scoped_suppression_expiry ON scoped_suppression (expires_at) WHERE expires_at IS NOT NULL;
