-- locks: short
-- People: who may do what, with their roles, tenants and ways to sign in, and the sessions of their browsers. Written so that it can be
-- run again, in words that MySQL and MariaDB share.
CREATE TABLE IF NOT EXISTS gateway_user (
    id           BINARY(16) NOT NULL PRIMARY KEY,
    name         VARCHAR(100) NOT NULL,
    display_name TEXT NOT NULL,
    email        VARCHAR(320),
    role         BIGINT NOT NULL,
    tenants      MEDIUMTEXT,
    read_content BIGINT NOT NULL,
    issuer       VARCHAR(255),
    subject      VARCHAR(255),
    credentials  MEDIUMTEXT NOT NULL,
    disabled_at  BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    UNIQUE KEY gateway_user_name (name),
    UNIQUE KEY gateway_user_identity (issuer, subject),
    KEY gateway_user_email (email)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS user_session (
    id       BINARY(16) NOT NULL PRIMARY KEY,
    user_id  BINARY(16) NOT NULL,
    began_at BIGINT NOT NULL,
    ends_at  BIGINT NOT NULL,
    seen_at  BIGINT NOT NULL,
    way      TEXT NOT NULL,
    address  TEXT,
    agent    TEXT,
    KEY user_session_user (user_id, id),
    KEY user_session_end (ends_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Who made a key; empty for keys of older versions.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'api_key' AND column_name = 'created_by') = 0,
    'ALTER TABLE api_key ADD COLUMN created_by TEXT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

-- The audit log as a chain: each line has a position and the digest of itself and the line before. What it is about is digested with a
-- salt, so that an erased address is no fault of the chain and cannot be guessed from its digest. Lines of older versions have none of it.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND column_name = 'position') = 0,
    'ALTER TABLE audit ADD COLUMN position BIGINT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND column_name = 'previous') = 0,
    'ALTER TABLE audit ADD COLUMN previous BINARY(32)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND column_name = 'digest') = 0,
    'ALTER TABLE audit ADD COLUMN digest BINARY(32)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND column_name = 'salt') = 0,
    'ALTER TABLE audit ADD COLUMN salt BINARY(16)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND column_name = 'target_digest') = 0,
    'ALTER TABLE audit ADD COLUMN target_digest BINARY(32)', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
SET @add_index = IF((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()
    AND table_name = 'audit' AND index_name = 'audit_position') = 0,
    'CREATE UNIQUE INDEX audit_position ON audit (position)', 'DO 0');
PREPARE add_index FROM @add_index;
EXECUTE add_index;
DEALLOCATE PREPARE add_index;

-- The last line of the chain, and the last one that retention has removed: the chain goes on from there.
CREATE TABLE IF NOT EXISTS audit_head (
    id       BIGINT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    digest   BINARY(32) NOT NULL,
    trimmed  BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
INSERT IGNORE INTO audit_head (id, position, digest, trimmed) VALUES (1, 0, REPEAT(CHAR(0), 32), 0);
