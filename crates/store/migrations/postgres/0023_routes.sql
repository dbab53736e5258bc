-- locks: none
-- Routes, which choose the account of mail that names none, and the dialogue with the relay of each message's last failed attempt.
CREATE TABLE route (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    position   BIGINT NOT NULL,
    active     BIGINT NOT NULL,
    content    TEXT NOT NULL,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE dialogue (
    uid     BYTEA NOT NULL PRIMARY KEY,
    attempt BIGINT NOT NULL,
    content TEXT NOT NULL
);
