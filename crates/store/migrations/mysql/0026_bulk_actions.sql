-- locks: none
-- Bulk actions: one action on many messages, and how far it is. `reached` is the message before which the next slice begins, `again`
-- has those of the last slice that changed meanwhile. And what the last check of a sending domain's DNS found.
CREATE TABLE IF NOT EXISTS bulk_action (
    tenant        VARCHAR(64) NOT NULL,
    id            BINARY(16) NOT NULL,
    state         BIGINT NOT NULL,
    task          LONGTEXT NOT NULL,
    selected      LONGBLOB NOT NULL,
    actor         TEXT NOT NULL,
    reached       BINARY(16),
    again         LONGBLOB NOT NULL,
    expected      BIGINT NOT NULL,
    expected_more BIGINT NOT NULL,
    changed       BIGINT NOT NULL,
    skipped       BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    PRIMARY KEY (tenant, id),
    KEY bulk_action_running (state, tenant, id),
    KEY bulk_action_ended (ended_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS domain_check (
    tenant      VARCHAR(64) NOT NULL,
    domain      VARCHAR(255) NOT NULL,
    findings    LONGTEXT NOT NULL,
    checked_at  BIGINT NOT NULL,
    right_since BIGINT,
    PRIMARY KEY (tenant, domain),
    KEY domain_check_age (checked_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
