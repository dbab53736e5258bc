-- locks: none
-- Bulk actions: one action on many messages, and how far it is. `reached` is the message before which the next slice begins, `again`
-- has those of the last slice that changed meanwhile. And what the last check of a sending domain's DNS found.
CREATE TABLE bulk_action (
    tenant        TEXT COLLATE "C" NOT NULL,
    id            BYTEA NOT NULL,
    state         BIGINT NOT NULL,
    task          TEXT NOT NULL,
    selected      BYTEA NOT NULL,
    actor         TEXT NOT NULL,
    reached       BYTEA,
    again         BYTEA NOT NULL,
    expected      BIGINT NOT NULL,
    expected_more BIGINT NOT NULL,
    changed       BIGINT NOT NULL,
    skipped       BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX bulk_action_running ON bulk_action (tenant, id) WHERE state = 1;
CREATE INDEX bulk_action_ended ON bulk_action (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE domain_check (
    tenant      TEXT COLLATE "C" NOT NULL,
    domain      TEXT COLLATE "C" NOT NULL,
    findings    TEXT NOT NULL,
    checked_at  BIGINT NOT NULL,
    right_since BIGINT,
    PRIMARY KEY (tenant, domain)
);
CREATE INDEX domain_check_age ON domain_check (checked_at);
