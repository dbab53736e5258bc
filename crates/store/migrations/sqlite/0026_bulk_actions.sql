-- locks: none
-- Bulk actions: one action on many messages, and how far it is. `reached` is the message before which the next slice begins, `again`
-- has those of the last slice that changed meanwhile. And what the last check of a sending domain's DNS found.
CREATE TABLE bulk_action (
    tenant        TEXT NOT NULL,
    id            BLOB NOT NULL,
    state         INTEGER NOT NULL,
    task          TEXT NOT NULL,
    selected      BLOB NOT NULL,
    actor         TEXT NOT NULL,
    reached       BLOB,
    again         BLOB NOT NULL,
    expected      INTEGER NOT NULL,
    expected_more INTEGER NOT NULL,
    changed       INTEGER NOT NULL,
    skipped       INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX bulk_action_running ON bulk_action (tenant, id) WHERE state = 1;
CREATE INDEX bulk_action_ended ON bulk_action (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE domain_check (
    tenant      TEXT NOT NULL,
    domain      TEXT NOT NULL,
    findings    TEXT NOT NULL,
    checked_at  INTEGER NOT NULL,
    right_since INTEGER,
    PRIMARY KEY (tenant, domain)
) WITHOUT ROWID;
CREATE INDEX domain_check_age ON domain_check (checked_at);
