-- locks: short
-- What movers look for in their table of tasks: the date that a mail bears, and how often it was tried in all. Mail from before this
-- step has neither. Written so that it can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'inbound' AND column_name = 'dated_at') = 0,
    'ALTER TABLE inbound ADD COLUMN dated_at BIGINT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'inbound' AND column_name = 'attempts') = 0,
    'ALTER TABLE inbound ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
