-- locks: short
-- Where a message belongs in a trace: trace, span and flags in 25 bytes. Empty for mail that is not traced.
ALTER TABLE content ADD COLUMN trace BYTEA;
