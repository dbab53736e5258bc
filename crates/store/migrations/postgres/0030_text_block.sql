-- locks: none
-- The texts of about a thousand messages in one compressed row, for searches. `marked_at` is set while a block is empty. The server need
-- not try to compress them again.
CREATE TABLE text_block (
    tenant     TEXT COLLATE "C" NOT NULL,
    first_uid  BYTEA NOT NULL,
    last_uid   BYTEA NOT NULL,
    messages   BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    marked_at  BIGINT,
    words      BYTEA NOT NULL,
    PRIMARY KEY (tenant, first_uid)
);
ALTER TABLE text_block ALTER COLUMN words SET STORAGE EXTERNAL;
CREATE INDEX text_block_marked ON text_block (marked_at) WHERE marked_at IS NOT NULL;
