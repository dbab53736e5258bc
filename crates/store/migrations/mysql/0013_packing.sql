-- locks: short
-- Bodies may be packed: 0 as they are, 1 mail and request in one frame in raw, 2 the mail alone. Rows from before are plain.
-- Written so that it can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'content' AND column_name = 'packing') = 0,
    'ALTER TABLE content ADD COLUMN packing BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
