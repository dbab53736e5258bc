-- From which version of the schema on a program may write; NULL means the migration's own.
ALTER TABLE schema_migration ADD COLUMN writable_from BIGINT;

-- The processes that share this database. A beat that moves is a life; times are for people. The slot is a small number
-- of its own for each, so that nodes count in shards of their own.
CREATE TABLE node (
    incarnation BYTEA  NOT NULL PRIMARY KEY,
    identity    BYTEA  NOT NULL,
    slot        BIGINT NOT NULL UNIQUE,
    name        TEXT   NOT NULL,
    address     TEXT   NOT NULL,
    version     TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    beat        BIGINT NOT NULL,
    beat_at     BIGINT NOT NULL
) WITH (fillfactor = 50);

-- What one node at a time does. The term rises with each change of hands.
CREATE TABLE duty (
    name   TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    holder BYTEA  NOT NULL,
    term   BIGINT NOT NULL,
    since  BIGINT NOT NULL
);
