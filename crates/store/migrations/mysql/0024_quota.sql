-- locks: none
-- What tenants with a daily quota have handed over, by day. Nodes lease parts of a quota by raising these numbers.
CREATE TABLE IF NOT EXISTS quota_use (
    tenant     VARCHAR(64) NOT NULL,
    day        BIGINT NOT NULL,
    messages   BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    warned     BIGINT NOT NULL,
    PRIMARY KEY (tenant, day)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
