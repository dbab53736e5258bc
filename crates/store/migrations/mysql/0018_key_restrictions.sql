-- locks: short
-- Whom a key may send from and to, as JSON. Keys from before this step are bound by nothing, and so are most after it. Written so that it
-- can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'api_key' AND column_name = 'restrictions') = 0,
    'ALTER TABLE api_key ADD COLUMN restrictions MEDIUMTEXT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
