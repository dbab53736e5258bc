-- locks: none
-- The texts of about a thousand messages in one compressed row, for searches. `marked_at` is set while a block is empty.
CREATE TABLE IF NOT EXISTS text_block (
    tenant     VARCHAR(64) NOT NULL,
    first_uid  BINARY(16) NOT NULL,
    last_uid   BINARY(16) NOT NULL,
    messages   BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    marked_at  BIGINT,
    words      LONGBLOB NOT NULL,
    PRIMARY KEY (tenant, first_uid),
    KEY text_block_marked (marked_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
