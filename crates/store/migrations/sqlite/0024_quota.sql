-- locks: none
-- What tenants with a daily quota have handed over, by day. Nodes lease parts of a quota by raising these numbers.
CREATE TABLE quota_use (
    tenant     TEXT NOT NULL,
    day        INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    warned     INTEGER NOT NULL,
    PRIMARY KEY (tenant, day)
) WITHOUT ROWID;
