-- locks: none
-- What readers need with a million messages: lists by state in the order of ids, batches by code, and what happened lately.

-- Those that take the place of another begin as it does, so that programs which know the other lose nothing.
-- online
CREATE INDEX CONCURRENTLY IF NOT EXISTS message_status_next ON message (status, tenant, uid);
DROP INDEX CONCURRENTLY IF EXISTS message_status;
CREATE INDEX CONCURRENTLY IF NOT EXISTS message_exhausted ON message (tenant, uid) WHERE exhausted;
CREATE INDEX CONCURRENTLY IF NOT EXISTS recipient_address_next ON recipient (lower(address), uid);
DROP INDEX CONCURRENTLY IF EXISTS recipient_address;
CREATE INDEX CONCURRENTLY IF NOT EXISTS lane_batch ON lane (tenant, batch);
-- at once
-- By state and tenant, in the order of ids: for lists, and for what stalled. Dead letters only, which are few.
ALTER INDEX message_status_next RENAME TO message_status;
ALTER INDEX recipient_address_next RENAME TO recipient_address;

-- What happened in each ten seconds of the last hour. Slots are used in turns, so nothing need be removed.
CREATE TABLE pace (
    tenant   TEXT   COLLATE "C" NOT NULL,
    slot     BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    accepted BIGINT NOT NULL,
    sent     BIGINT NOT NULL,
    failed   BIGINT NOT NULL,
    PRIMARY KEY (tenant, slot)
) WITH (fillfactor = 50);
