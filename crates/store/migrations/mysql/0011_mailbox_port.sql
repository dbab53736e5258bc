-- locks: short
-- Two mailboxes may be on one host under one user name, behind different ports: tunnels end so. place stays the digest of host,
-- username and folder, and is still what tells whether a mailbox has moved; unique is it together with the port. Programs from
-- before this step leave the port 0. Written so that it can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'mailbox' AND column_name = 'port') = 0,
    'ALTER TABLE mailbox ADD COLUMN port BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
UPDATE mailbox SET port = CAST(JSON_EXTRACT(settings, '$.port') AS SIGNED);
SET @widen_index = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'mailbox' AND index_name = 'mailbox_place' AND column_name = 'port') = 0,
    'ALTER TABLE mailbox DROP INDEX mailbox_place, ADD UNIQUE KEY mailbox_place (tenant, place, port)', 'DO 0');
PREPARE widen_index FROM @widen_index;
EXECUTE widen_index;
DEALLOCATE PREPARE widen_index;
