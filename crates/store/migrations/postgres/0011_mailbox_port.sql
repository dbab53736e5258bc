-- locks: short
-- Two mailboxes may be on one host under one user name, behind different ports: tunnels end so. place stays the digest of host,
-- username and folder, and is still what tells whether a mailbox has moved; unique is it together with the port. Programs from
-- before this step leave the port 0.
ALTER TABLE mailbox ADD COLUMN port BIGINT NOT NULL DEFAULT 0;
UPDATE mailbox SET port = CAST(settings::json ->> 'port' AS BIGINT);
DROP INDEX mailbox_place;
CREATE UNIQUE INDEX mailbox_place ON mailbox (tenant, place, port);
