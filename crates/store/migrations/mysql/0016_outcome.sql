-- locks: none
-- Messages whose recipients bounced, complained or were reached are found by what became of them. Written so that it can be run again, in
-- words that MySQL and MariaDB share.
SET @add_key = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'recipient' AND index_name = 'recipient_outcome') = 0,
    'ALTER TABLE recipient ADD KEY recipient_outcome (outcome, uid), ALGORITHM = INPLACE, LOCK = NONE', 'DO 0');
PREPARE add_key FROM @add_key;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;
