-- From which version of the schema on a program may write; NULL means the migration's own. Written so that it can be
-- run again, in words that MySQL and MariaDB share.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'schema_migration' AND column_name = 'writable_from') = 0,
    'ALTER TABLE schema_migration ADD COLUMN writable_from BIGINT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;

-- The processes that share this database. A beat that moves is a life; times are for people. The slot is a small number
-- of its own for each, so that nodes count in shards of their own.
CREATE TABLE IF NOT EXISTS node (
    incarnation BINARY(16)   NOT NULL PRIMARY KEY,
    identity    BINARY(16)   NOT NULL,
    slot        BIGINT       NOT NULL UNIQUE,
    name        VARCHAR(255) NOT NULL,
    address     VARCHAR(255) NOT NULL,
    version     VARCHAR(64)  NOT NULL,
    started_at  BIGINT       NOT NULL,
    beat        BIGINT       NOT NULL,
    beat_at     BIGINT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What one node at a time does. The term rises with each change of hands.
CREATE TABLE IF NOT EXISTS duty (
    name   VARCHAR(64) NOT NULL PRIMARY KEY,
    holder BINARY(16)  NOT NULL,
    term   BIGINT      NOT NULL,
    since  BIGINT      NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The last transaction of each writer: tells what became of a commit whose answer was lost.
CREATE TABLE IF NOT EXISTS writer_mark (
    shard BIGINT     NOT NULL PRIMARY KEY,
    mark  BINARY(16) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
