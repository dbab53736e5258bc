-- locks: none
-- What other servers report about mail in a domain's name and about TLS with its servers: each report once, and the sums of all
-- that count by day, source and result. And the mail that stands in a tenant's archive, until it expires.
CREATE TABLE IF NOT EXISTS domain_report (
    tenant         VARCHAR(64) NOT NULL,
    domain         VARCHAR(255) NOT NULL,
    digest         BINARY(32) NOT NULL,
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
    inbound        BINARY(16) NOT NULL,
    received_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, digest),
    KEY domain_report_latest (tenant, domain, received_at),
    KEY domain_report_age (received_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS domain_report_line (
    tenant         VARCHAR(64) NOT NULL,
    domain         VARCHAR(255) NOT NULL,
    day            BIGINT NOT NULL,
    kind           BIGINT NOT NULL,
    authentication BIGINT NOT NULL,
    source         VARCHAR(255) NOT NULL,
    result         BIGINT NOT NULL,
    total          BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, day, kind, authentication, source, result),
    KEY domain_report_line_age (day)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS archived_mail (
    tenant      VARCHAR(64) NOT NULL,
    uid         BINARY(16) NOT NULL,
    path        TEXT NOT NULL,
    size        BIGINT NOT NULL,
    digest      BINARY(32) NOT NULL,
    is_sealed   BIGINT NOT NULL,
    archived_at BIGINT NOT NULL,
    expires_at  BIGINT,
    PRIMARY KEY (tenant, uid),
    KEY archived_mail_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
