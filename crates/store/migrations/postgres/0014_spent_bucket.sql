-- locks: none
-- What an account used long ago is found by its time, whatever else is there: it is forgotten some of it at a time.
-- online
CREATE INDEX CONCURRENTLY IF NOT EXISTS spent_bucket ON spent (span, bucket);
-- at once
