-- locks: short
-- Templates: the layout that wraps one, and whether its style sheet is inlined. The language of a known recipient. What became of the mail
-- of each stream, by hour. And the changes of suppression lists that subscribers were notified of: their events stand under an id of their
-- own, so this says whose they are and when they go.
ALTER TABLE template ADD COLUMN layout TEXT;
ALTER TABLE template ADD COLUMN inline_css INTEGER NOT NULL DEFAULT 0;
ALTER TABLE known_recipient ADD COLUMN locale TEXT;

CREATE TABLE stream_statistic (
    tenant       TEXT NOT NULL,
    hour         INTEGER NOT NULL,
    stream       TEXT NOT NULL,
    accepted     INTEGER NOT NULL,
    sent         INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    suppressed   INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    bounced      INTEGER NOT NULL,
    complained   INTEGER NOT NULL,
    unsubscribed INTEGER NOT NULL,
    resubscribed INTEGER NOT NULL,
    PRIMARY KEY (tenant, stream, hour)
) WITHOUT ROWID;
CREATE INDEX stream_statistic_hour ON stream_statistic (hour);

CREATE TABLE suppression_change (
    uid     BLOB NOT NULL,
    tenant  TEXT NOT NULL,
    pattern TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (uid)
) WITHOUT ROWID;
CREATE INDEX suppression_change_age ON suppression_change (at);
CREATE INDEX suppression_change_pattern ON suppression_change (tenant, pattern);
