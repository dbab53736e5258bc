-- locks: none
-- Streams, a tenant's named kinds of mail, and suppressions that are narrower or wider than a tenant's list: of one stream, of a
-- pattern of addresses, or, where the tenant is empty, of the whole installation. An empty stream stands for all of them.
CREATE TABLE IF NOT EXISTS stream (
    tenant             VARCHAR(64) NOT NULL,
    id                 VARCHAR(64) NOT NULL,
    name               TEXT NOT NULL,
    description        TEXT,
    unsubscribe        BIGINT NOT NULL,
    unsubscribe_mailto TEXT,
    version            BIGINT NOT NULL,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS scoped_suppression (
    tenant     VARCHAR(64) NOT NULL,
    pattern    VARBINARY(512) NOT NULL,
    stream     VARCHAR(64) NOT NULL,
    reason     BIGINT NOT NULL,
    note       TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant, pattern, stream),
    KEY scoped_suppression_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
