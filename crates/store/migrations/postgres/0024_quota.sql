-- locks: none
-- What tenants with a daily quota have handed over, by day. Nodes lease parts of a quota by raising these numbers.
CREATE TABLE quota_use (
    tenant     TEXT COLLATE "C" NOT NULL,
    day        BIGINT NOT NULL,
    messages   BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    warned     BIGINT NOT NULL,
    PRIMARY KEY (tenant, day)
);
