-- locks: none
-- Routes, which choose the account of mail that names none, and the dialogue with the relay of each message's last failed attempt.
CREATE TABLE IF NOT EXISTS route (
    tenant     VARCHAR(64) NOT NULL,
    id         VARCHAR(64) NOT NULL,
    position   BIGINT NOT NULL,
    active     BIGINT NOT NULL,
    content    LONGTEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS dialogue (
    uid     BINARY(16) NOT NULL PRIMARY KEY,
    attempt BIGINT NOT NULL,
    content MEDIUMTEXT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
