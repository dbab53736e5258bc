-- locks: by table size
-- What readers need with a million messages: lists by state in the order of ids, batches by code, and what happened lately.

-- By state and tenant, in the order of ids: for lists, and for what stalled.
DROP INDEX message_status;
CREATE INDEX message_status ON message (status, tenant, uid);
-- Dead letters only, which are few.
CREATE INDEX message_exhausted ON message (tenant, uid) WHERE exhausted = 1;
CREATE INDEX lane_batch ON lane (tenant, batch);

-- What happened in each ten seconds of the last hour. Slots are used in turns, so nothing need be removed.
CREATE TABLE pace (
    tenant   TEXT    NOT NULL,
    slot     INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    sent     INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    PRIMARY KEY (tenant, slot)
) WITHOUT ROWID;
