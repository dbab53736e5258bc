-- locks: short
-- How often the process died with a mail in hand. Mail that costs its worker its life is told from mail that fails.
ALTER TABLE inbound ADD COLUMN lost_leases BIGINT NOT NULL DEFAULT 0;

-- Sessions that were signed out before their time: a copied cookie must not outlive its sign-out on any node.
CREATE TABLE ended_session (
    id      BYTEA  NOT NULL PRIMARY KEY,
    ends_at BIGINT NOT NULL
);
CREATE INDEX ended_session_end ON ended_session (ends_at);

-- Reports without proof are events of their own (30), which needs no other table. Programs that do not know this step would take
-- such an event for damage, so they may not write beside it.

-- The last transaction of each writer: tells what became of a commit whose answer was lost, also on a standby that was promoted.
CREATE TABLE writer_mark (
    shard BIGINT NOT NULL PRIMARY KEY,
    mark  BYTEA  NOT NULL
);
