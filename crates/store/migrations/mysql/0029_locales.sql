-- locks: short
-- Templates: the layout that wraps one, and whether its style sheet is inlined. The language of a known recipient. What became of the mail
-- of each stream, by hour. And the changes of suppression lists that subscribers were notified of: their events stand under an id of their
-- own, so this says whose they are and when they go. Written so that it
-- can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'template' AND column_name = 'layout') = 0,
    'ALTER TABLE template ADD COLUMN layout VARCHAR(128)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'template' AND column_name = 'inline_css') = 0,
    'ALTER TABLE template ADD COLUMN inline_css BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'known_recipient' AND column_name = 'locale') = 0,
    'ALTER TABLE known_recipient ADD COLUMN locale VARCHAR(16)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

CREATE TABLE IF NOT EXISTS stream_statistic (
    tenant       VARCHAR(64) NOT NULL,
    hour         BIGINT NOT NULL,
    stream       VARCHAR(64) NOT NULL,
    accepted     BIGINT NOT NULL,
    sent         BIGINT NOT NULL,
    failed       BIGINT NOT NULL,
    suppressed   BIGINT NOT NULL,
    delivered    BIGINT NOT NULL,
    bounced      BIGINT NOT NULL,
    complained   BIGINT NOT NULL,
    unsubscribed BIGINT NOT NULL,
    resubscribed BIGINT NOT NULL,
    PRIMARY KEY (tenant, stream, hour),
    KEY stream_statistic_hour (hour)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS suppression_change (
    uid     BINARY(16) NOT NULL,
    tenant  VARCHAR(64) NOT NULL,
    pattern VARBINARY(512) NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (uid),
    KEY suppression_change_age (at),
    KEY suppression_change_pattern (tenant, pattern)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
