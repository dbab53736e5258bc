-- How often the process died with a mail in hand. Mail that costs its worker its life is told from mail that fails. Written so that it
-- can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'inbound' AND column_name = 'lost_leases') = 0,
    'ALTER TABLE inbound ADD COLUMN lost_leases BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
