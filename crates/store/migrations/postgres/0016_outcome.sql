-- locks: none
-- Messages whose recipients bounced, complained or were reached are found by what became of them. Most recipients have no outcome and are
-- not in it.
-- online
CREATE INDEX CONCURRENTLY IF NOT EXISTS recipient_outcome ON recipient (outcome, uid) WHERE outcome IS NOT NULL;
-- at once
