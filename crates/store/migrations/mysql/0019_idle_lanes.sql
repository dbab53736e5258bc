-- locks: short
-- Since when no message refers to a lane; a lane that stays so for a while is removed. Older programs leave it empty. Written so that it
-- can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'lane' AND column_name = 'idle_since') = 0,
    'ALTER TABLE lane ADD COLUMN idle_since BIGINT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
