-- locks: none
-- What other servers report about mail in a domain's name and about TLS with its servers: each report once, and the sums of all
-- that count by day, source and result. And the mail that stands in a tenant's archive, until it expires.
CREATE TABLE domain_report (
    tenant         TEXT NOT NULL,
    domain         TEXT NOT NULL,
    digest         BLOB NOT NULL,
    kind           INTEGER NOT NULL,
    organisation   TEXT NOT NULL,
    report_id      TEXT NOT NULL,
    sender         TEXT,
    authentication INTEGER NOT NULL,
    began_at       INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    policy         TEXT,
    total          INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    inbound        BLOB NOT NULL,
    received_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, domain, digest)
) WITHOUT ROWID;
CREATE INDEX domain_report_latest ON domain_report (tenant, domain, received_at);
CREATE INDEX domain_report_age ON domain_report (received_at);

CREATE TABLE domain_report_line (
    tenant         TEXT NOT NULL,
    domain         TEXT NOT NULL,
    day            INTEGER NOT NULL,
    kind           INTEGER NOT NULL,
    authentication INTEGER NOT NULL,
    source         TEXT NOT NULL,
    result         INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    PRIMARY KEY (tenant, domain, day, kind, authentication, source, result)
) WITHOUT ROWID;
CREATE INDEX domain_report_line_age ON domain_report_line (day);

CREATE TABLE archived_mail (
    tenant      TEXT NOT NULL,
    uid         BLOB NOT NULL,
    path        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    digest      BLOB NOT NULL,
    is_sealed   INTEGER NOT NULL,
    archived_at INTEGER NOT NULL,
    expires_at  INTEGER,
    PRIMARY KEY (tenant, uid)
) WITHOUT ROWID;
CREATE INDEX archived_mail_expiry ON archived_mail (expires_at) WHERE expires_at IS NOT NULL;
