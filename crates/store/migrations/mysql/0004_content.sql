-- Bodies outside the database, messages that wait to be prepared, templates, known recipients, signing keys, links. Written so
-- that it can be run again, in words that MySQL and MariaDB share.

SET @add_columns = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'content' AND column_name = 'raw_blob') = 0,
    'ALTER TABLE content ADD COLUMN raw_blob VARCHAR(80), ADD COLUMN payload_blob VARCHAR(80), ADD COLUMN payload_size BIGINT, ADD COLUMN `sensitive` BIGINT NOT NULL DEFAULT 0, ADD COLUMN recipient_id BINARY(16), ADD COLUMN payload LONGBLOB, ADD KEY content_raw_blob (raw_blob), ADD KEY content_payload_blob (payload_blob)',
    'DO 0');
PREPARE add_columns FROM @add_columns;
EXECUTE add_columns;
DEALLOCATE PREPARE add_columns;

-- Messages that are not composed yet: a row for each, until it is ready or ended.
CREATE TABLE IF NOT EXISTS preparation (
    uid     BINARY(16) NOT NULL,
    tenant  VARCHAR(64) NOT NULL,
    due_at  BIGINT NOT NULL,
    tries   BIGINT NOT NULL,
    settled LONGTEXT,
    PRIMARY KEY (uid),
    KEY preparation_due (tenant, due_at, uid)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Blobs by the digest of tenant and content. A condemned one is being deleted; the next of its content gets another
-- generation, and with it another name.
CREATE TABLE IF NOT EXISTS stored_blob (
    digest      BINARY(32) NOT NULL,
    generation  BIGINT NOT NULL,
    name        VARCHAR(80) NOT NULL,
    size        BIGINT NOT NULL,
    reserved_at BIGINT NOT NULL,
    condemned   BIGINT NOT NULL,
    PRIMARY KEY (digest),
    KEY stored_blob_reserved (reserved_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Files that a mail links to instead of carrying them.
CREATE TABLE IF NOT EXISTS link (
    uid          BINARY(16) NOT NULL,
    `blob`       VARCHAR(80) NOT NULL,
    tenant       VARCHAR(64) NOT NULL,
    filename     TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (uid, `blob`),
    KEY link_blob (`blob`),
    KEY link_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS template (
    tenant      VARCHAR(64) NOT NULL,
    name        VARCHAR(128) NOT NULL,
    version     BIGINT NOT NULL,
    subject     LONGTEXT NOT NULL,
    html        LONGTEXT,
    text        LONGTEXT,
    mjml        LONGTEXT,
    description TEXT,
    sample      LONGTEXT,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- A tenant's directory of recipients. A deleted one keeps its row, and gives its external id free (live is NULL then).
CREATE TABLE IF NOT EXISTS known_recipient (
    tenant          VARCHAR(64) NOT NULL,
    id              BINARY(16) NOT NULL,
    external_id     VARBINARY(256),
    live            BIGINT,
    name            TEXT,
    address         VARCHAR(320) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
    personal_number BLOB,
    personal_digest BINARY(32),
    personal_masked TEXT,
    version         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT,
    PRIMARY KEY (tenant, id),
    UNIQUE KEY known_recipient_external (tenant, external_id, live),
    KEY known_recipient_personal (tenant, personal_digest),
    KEY known_recipient_address (tenant, address, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Signing keys: rsa (1), ed25519 (2).
CREATE TABLE IF NOT EXISTS dkim_key (
    tenant     VARCHAR(64) NOT NULL,
    domain     VARCHAR(255) NOT NULL,
    selector   VARCHAR(63) NOT NULL,
    algorithm  BIGINT NOT NULL,
    private    BLOB NOT NULL,
    public     TEXT NOT NULL,
    active     BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, selector)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
