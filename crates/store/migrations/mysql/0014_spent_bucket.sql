-- locks: none
-- What an account used long ago is found by its time, whatever else is there: it is forgotten some of it at a time. Written so that
-- it can be run again, in words that MySQL and MariaDB share.
SET @add_key = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'spent' AND index_name = 'spent_bucket') = 0,
    'ALTER TABLE spent ADD KEY spent_bucket (span, bucket), ALGORITHM = INPLACE, LOCK = NONE', 'DO 0');
PREPARE add_key FROM @add_key;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;
