-- locks: none
-- What other servers report about mail in a domain's name and about TLS with its servers: each report once, and the sums of all
-- that count by day, source and result. And the mail that stands in a tenant's archive, until it expires.
CREATE TABLE domain_report (
    tenant         TEXT COLLATE "C" NOT NULL,
    domain         TEXT COLLATE "C" NOT NULL,
    digest         BYTEA NOT NULL,
    kind           BIGINT NOT NULL,
    organisation   TEXT NOT NULL,
    report_id      TEXT NOT NULL,
    sender         TEXT,
    authentication BIGINT NOT NULL,
    began_at       BIGINT NOT NULL,
    ended_at       BIGINT NOT NULL,
    policy         TEXT,
    total          BIGINT NOT NULL,
    failed         BIGINT NOT NULL,
    inbound        BYTEA NOT NULL,
    received_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, digest)
);
CREATE INDEX domain_report_latest ON domain_report (tenant, domain, received_at);
CREATE INDEX domain_report_age ON domain_report (received_at);

CREATE TABLE domain_report_line (
    tenant         TEXT COLLATE "C" NOT NULL,
    domain         TEXT COLLATE "C" NOT NULL,
    day            BIGINT NOT NULL,
    kind           BIGINT NOT NULL,
    authentication BIGINT NOT NULL,
    source         TEXT COLLATE "C" NOT NULL,
    result         BIGINT NOT NULL,
    total          BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, day, kind, authentication, source, result)
);
CREATE INDEX domain_report_line_age ON domain_report_line (day);

CREATE TABLE archived_mail (
    tenant      TEXT COLLATE "C" NOT NULL,
    uid         BYTEA NOT NULL,
    path        TEXT NOT NULL,
    size        BIGINT NOT NULL,
    digest      BYTEA NOT NULL,
    is_sealed   BIGINT NOT NULL,
    archived_at BIGINT NOT NULL,
    expires_at  BIGINT,
    PRIMARY KEY (tenant, uid)
);
CREATE INDEX archived_mail_expiry ON archived_mail (expires_at) WHERE expires_at IS NOT NULL;
