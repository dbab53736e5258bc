-- locks: short
-- Where a message belongs in a trace: trace, span and flags in 25 bytes. Empty for mail that is not traced.
-- Written so that it can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'content' AND column_name = 'trace') = 0,
    'ALTER TABLE content ADD COLUMN trace VARBINARY(25)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
