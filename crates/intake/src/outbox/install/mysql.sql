-- The outbox of Postway: insert a row, and its mail goes out if your transaction commits.
CREATE TABLE IF NOT EXISTS `postway_outbox` (
    `seq`          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    -- What the mail is known by, once and for all: the same id never gives a second mail.
    `id`           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (UUID()),
    -- What to send. Lists are one value, several with commas between them, or a JSON list. Times are in UTC.
    `from`         TEXT,
    `to`           MEDIUMTEXT,
    `cc`           MEDIUMTEXT,
    `bcc`          MEDIUMTEXT,
    `reply_to`     TEXT,
    `subject`      TEXT,
    `text`         LONGTEXT,
    `html`         LONGTEXT,
    `template`     VARCHAR(255),
    `variables`    JSON,
    `headers`      JSON,
    `metadata`     JSON,
    `tags`         TEXT,
    `batch`        VARCHAR(255),
    `priority`     VARCHAR(16),
    `account`      VARCHAR(255),
    `external_id`  VARCHAR(255),
    `collapse_key` VARCHAR(255),
    `sensitive`    BOOLEAN,
    `send_at`      DATETIME(3),
    `expires_at`   DATETIME(3),
    -- All of it, and whatever else a message has, as POST /v1/messages takes it; the columns above win.
    `message`      JSON,
    `created_at`   DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
    -- What became of it, written by Postway.
    `status`       VARCHAR(16) CHARACTER SET ascii NOT NULL DEFAULT 'pending',
    `outcome`      VARCHAR(32) CHARACTER SET ascii,
    `error`        TEXT,
    `message_uid`  CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    `accepted_at`  DATETIME(3),
    `sent_at`      DATETIME(3),
    `updated_at`   DATETIME(3),
    UNIQUE KEY `postway_outbox_id` (`id`),
    KEY `postway_outbox_pending` (`status`, `seq`),
    KEY `postway_outbox_open` (`status`, `updated_at`),
    KEY `postway_outbox_message` (`message_uid`),
    CONSTRAINT `postway_outbox_id_form` CHECK (`id` REGEXP '^[A-Za-z0-9._:@-]{1,64}$')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- How far Postway has told what became of the rows.
CREATE TABLE IF NOT EXISTS `postway_progress` (
    `source`     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `page`       BIGINT NOT NULL,
    `entry`      BIGINT NOT NULL,
    `updated_at` DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE OR REPLACE VIEW `postway_outbox_status` AS
    SELECT `id`, `status`, `outcome`, `error`, `message_uid`, `created_at`, `accepted_at`, `sent_at`, `updated_at`
    FROM `postway_outbox`;
CREATE OR REPLACE VIEW `postway_outbox_summary` AS
    SELECT `status`, COUNT(*) AS `mails`, MIN(`created_at`) AS `oldest`, MAX(`created_at`) AS `newest`
    FROM `postway_outbox` GROUP BY `status`;
