-- locks: short
-- What an account used long ago is found by its time, whatever else is there: it is forgotten some of it at a time.
CREATE INDEX spent_bucket ON spent (span, bucket);
