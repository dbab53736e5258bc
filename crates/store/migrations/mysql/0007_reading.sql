-- locks: short
-- What readers need with a million messages: lists by state in the order of ids, batches by code, and what happened lately. Written so
-- that it can be run again, in words that MySQL and MariaDB share.

-- By state and tenant, in the order of ids: for lists, and for what stalled. Beside whoever writes, or not at all.
ALTER TABLE message DROP KEY message_status, ADD KEY message_status (status, tenant, uid),
    ALGORITHM = INPLACE, LOCK = NONE;

SET @add_key = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'lane' AND index_name = 'lane_batch') = 0,
    'ALTER TABLE lane ADD KEY lane_batch (tenant, batch), ALGORITHM = INPLACE, LOCK = NONE', 'DO 0');
PREPARE add_key FROM @add_key;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;

-- What happened in each ten seconds of the last hour. Slots are used in turns, so nothing need be removed.
CREATE TABLE IF NOT EXISTS pace (
    tenant   VARCHAR(64) NOT NULL,
    slot     BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    accepted BIGINT NOT NULL,
    sent     BIGINT NOT NULL,
    failed   BIGINT NOT NULL,
    PRIMARY KEY (tenant, slot)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
