-- Sessions that were signed out before their time: a copied cookie must not outlive its sign-out on any node.
CREATE TABLE IF NOT EXISTS ended_session (
    id      BINARY(16) NOT NULL PRIMARY KEY,
    ends_at BIGINT NOT NULL,
    KEY ended_session_end (ends_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
