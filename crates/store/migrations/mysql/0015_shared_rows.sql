-- locks: short
-- Events that are written together share a row: the first, and a list of the others, [[kind, data], ...], beside it.
-- Written so that it can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'event' AND column_name = 'more') = 0,
    'ALTER TABLE event ADD COLUMN more LONGTEXT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
