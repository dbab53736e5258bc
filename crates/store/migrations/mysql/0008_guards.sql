-- locks: short
-- How often the process died with a mail in hand. Mail that costs its worker its life is told from mail that fails. Written so that it
-- can be run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'inbound' AND column_name = 'lost_leases') = 0,
    'ALTER TABLE inbound ADD COLUMN lost_leases BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

-- Sessions that were signed out before their time: a copied cookie must not outlive its sign-out on any node.
CREATE TABLE IF NOT EXISTS ended_session (
    id      BINARY(16) NOT NULL PRIMARY KEY,
    ends_at BIGINT NOT NULL,
    KEY ended_session_end (ends_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Reports without proof are events of their own (30), which needs no other table. Programs that do not know this step would take
-- such an event for damage, so they may not write beside it.
