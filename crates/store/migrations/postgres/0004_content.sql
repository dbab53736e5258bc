-- Bodies outside the database, messages that wait to be prepared, templates, known recipients, signing keys, links.

ALTER TABLE content ADD COLUMN raw_blob TEXT COLLATE "C";
ALTER TABLE content ADD COLUMN payload_blob TEXT COLLATE "C";
ALTER TABLE content ADD COLUMN payload_size BIGINT;
ALTER TABLE content ADD COLUMN sensitive BIGINT NOT NULL DEFAULT 0;
ALTER TABLE content ADD COLUMN recipient_id BYTEA;
ALTER TABLE content ADD COLUMN payload BYTEA;

CREATE INDEX content_raw_blob ON content (raw_blob) WHERE raw_blob IS NOT NULL;
CREATE INDEX content_payload_blob ON content (payload_blob) WHERE payload_blob IS NOT NULL;

-- Messages that are not composed yet: a row for each, until it is ready or ended.
CREATE TABLE preparation (
    uid     BYTEA NOT NULL,
    tenant  TEXT COLLATE "C" NOT NULL,
    due_at  BIGINT NOT NULL,
    tries   BIGINT NOT NULL,
    settled TEXT,
    PRIMARY KEY (uid)
);
CREATE INDEX preparation_due ON preparation (tenant, due_at, uid);

-- Blobs by the digest of tenant and content. A condemned one is being deleted; the next of its content gets another
-- generation, and with it another name.
CREATE TABLE stored_blob (
    digest      BYTEA NOT NULL,
    generation  BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    size        BIGINT NOT NULL,
    reserved_at BIGINT NOT NULL,
    condemned   BIGINT NOT NULL,
    PRIMARY KEY (digest)
);
CREATE INDEX stored_blob_reserved ON stored_blob (reserved_at);

-- Files that a mail links to instead of carrying them.
CREATE TABLE link (
    uid          BYTEA NOT NULL,
    blob         TEXT COLLATE "C" NOT NULL,
    tenant       TEXT COLLATE "C" NOT NULL,
    filename     TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (uid, blob)
);
CREATE INDEX link_blob ON link (blob);
CREATE INDEX link_expiry ON link (expires_at);

CREATE TABLE template (
    tenant      TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    version     BIGINT NOT NULL,
    subject     TEXT NOT NULL,
    html        TEXT,
    text        TEXT,
    mjml        TEXT,
    description TEXT,
    sample      TEXT,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, version)
);

-- A tenant's directory of recipients. A deleted one keeps its row, and gives its external id free (live is NULL then).
CREATE TABLE known_recipient (
    tenant          TEXT COLLATE "C" NOT NULL,
    id              BYTEA NOT NULL,
    external_id     TEXT COLLATE "C",
    live            BIGINT,
    name            TEXT,
    address         TEXT COLLATE "C" NOT NULL,
    personal_number BYTEA,
    personal_digest BYTEA,
    personal_masked TEXT,
    version         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX known_recipient_external ON known_recipient (tenant, external_id, live);
CREATE INDEX known_recipient_personal ON known_recipient (tenant, personal_digest) WHERE personal_digest IS NOT NULL;
CREATE INDEX known_recipient_address ON known_recipient (tenant, lower(address), id);

-- Signing keys: rsa (1), ed25519 (2).
CREATE TABLE dkim_key (
    tenant     TEXT COLLATE "C" NOT NULL,
    domain     TEXT COLLATE "C" NOT NULL,
    selector   TEXT COLLATE "C" NOT NULL,
    algorithm  BIGINT NOT NULL,
    private    BYTEA NOT NULL,
    public     TEXT NOT NULL,
    active     BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, domain, selector)
);
