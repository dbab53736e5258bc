-- locks: none
-- The texts of about a thousand messages in one compressed row, for searches. `marked_at` is set while a block is empty. A rowid table:
-- its leaves hold whole blocks, an index tree's do not.
CREATE TABLE text_block (
    tenant     TEXT NOT NULL,
    first_uid  BLOB NOT NULL,
    last_uid   BLOB NOT NULL,
    messages   INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    marked_at  INTEGER,
    words      BLOB NOT NULL,
    PRIMARY KEY (tenant, first_uid)
);
CREATE INDEX text_block_marked ON text_block (marked_at) WHERE marked_at IS NOT NULL;
