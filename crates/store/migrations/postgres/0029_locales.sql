-- locks: short
-- Templates: the layout that wraps one, and whether its style sheet is inlined. The language of a known recipient. What became of the mail
-- of each stream, by hour. And the changes of suppression lists that subscribers were notified of: their events stand under an id of their
-- own, so this says whose they are and when they go.
ALTER TABLE template ADD COLUMN layout TEXT COLLATE "C";
ALTER TABLE template ADD COLUMN inline_css BIGINT NOT NULL DEFAULT 0;
ALTER TABLE known_recipient ADD COLUMN locale TEXT;

CREATE TABLE stream_statistic (
    tenant       TEXT COLLATE "C" NOT NULL,
    hour         BIGINT NOT NULL,
    stream       TEXT COLLATE "C" NOT NULL,
    accepted     BIGINT NOT NULL,
    sent         BIGINT NOT NULL,
    failed       BIGINT NOT NULL,
    suppressed   BIGINT NOT NULL,
    delivered    BIGINT NOT NULL,
    bounced      BIGINT NOT NULL,
    complained   BIGINT NOT NULL,
    unsubscribed BIGINT NOT NULL,
    resubscribed BIGINT NOT NULL,
    PRIMARY KEY (tenant, stream, hour)
);
CREATE INDEX stream_statistic_hour ON stream_statistic (hour);

CREATE TABLE suppression_change (
    uid     BYTEA NOT NULL,
    tenant  TEXT COLLATE "C" NOT NULL,
    pattern TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (uid)
);
CREATE INDEX suppression_change_age ON suppression_change (at);
CREATE INDEX suppression_change_pattern ON suppression_change (tenant, pattern);
