-- locks: short
-- Bodies may be packed: 0 as they are, 1 mail and request in one frame in raw, 2 the mail alone. Rows from before are plain.
ALTER TABLE content ADD COLUMN packing BIGINT NOT NULL DEFAULT 0;
