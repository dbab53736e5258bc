-- locks: short
-- What SMTP submission keeps: what a sender wishes to be told about delivery (RFC 3461), as JSON, and what a key is proven against
-- without being shown (SCRAM-SHA-256). Mostly neither is there; keys from before this step have no verifier. Written so that it can
-- be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'content' AND column_name = 'dsn') = 0,
    'ALTER TABLE content ADD COLUMN dsn MEDIUMTEXT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'api_key' AND column_name = 'scram') = 0,
    'ALTER TABLE api_key ADD COLUMN scram VARBINARY(255)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
