-- Bodies outside the database, messages that wait to be prepared, templates, known recipients, signing keys, links.

ALTER TABLE content ADD COLUMN raw_blob TEXT;
ALTER TABLE content ADD COLUMN payload_blob TEXT;
ALTER TABLE content ADD COLUMN payload_size INTEGER;
ALTER TABLE content ADD COLUMN sensitive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE content ADD COLUMN recipient_id BLOB;
-- Last, because nobody but its reader wants to read past it.
ALTER TABLE content ADD COLUMN payload BLOB;

CREATE INDEX content_raw_blob ON content (raw_blob) WHERE raw_blob IS NOT NULL;
CREATE INDEX content_payload_blob ON content (payload_blob) WHERE payload_blob IS NOT NULL;

-- Messages that are not composed yet: a row for each, until it is ready or ended.
CREATE TABLE preparation (
    uid     BLOB NOT NULL,
    tenant  TEXT NOT NULL,
    due_at  INTEGER NOT NULL,
    tries   INTEGER NOT NULL,
    settled TEXT,
    PRIMARY KEY (uid)
) WITHOUT ROWID;
CREATE INDEX preparation_due ON preparation (tenant, due_at, uid);

-- Blobs by the digest of tenant and content. A condemned one is being deleted; the next of its content gets another
-- generation, and with it another name.
CREATE TABLE stored_blob (
    digest      BLOB NOT NULL,
    generation  INTEGER NOT NULL,
    name        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    reserved_at INTEGER NOT NULL,
    condemned   INTEGER NOT NULL,
    PRIMARY KEY (digest)
) WITHOUT ROWID;
CREATE INDEX stored_blob_reserved ON stored_blob (reserved_at);

-- Files that a mail links to instead of carrying them.
CREATE TABLE link (
    uid          BLOB NOT NULL,
    blob         TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    filename     TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (uid, blob)
) WITHOUT ROWID;
CREATE INDEX link_blob ON link (blob);
CREATE INDEX link_expiry ON link (expires_at);

CREATE TABLE template (
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    subject     TEXT NOT NULL,
    html        TEXT,
    text        TEXT,
    mjml        TEXT,
    description TEXT,
    sample      TEXT,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, version)
) WITHOUT ROWID;

-- A tenant's directory of recipients. A deleted one keeps its row, and gives its external id free (live is NULL then).
CREATE TABLE known_recipient (
    tenant          TEXT NOT NULL,
    id              BLOB NOT NULL,
    external_id     TEXT,
    live            INTEGER,
    name            TEXT,
    address         TEXT COLLATE NOCASE NOT NULL,
    personal_number BLOB,
    personal_digest BLOB,
    personal_masked TEXT,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX known_recipient_external ON known_recipient (tenant, external_id, live);
CREATE INDEX known_recipient_personal ON known_recipient (tenant, personal_digest) WHERE personal_digest IS NOT NULL;
CREATE INDEX known_recipient_address ON known_recipient (tenant, address, id);

-- Signing keys: rsa (1), ed25519 (2).
CREATE TABLE dkim_key (
    tenant     TEXT NOT NULL,
    domain     TEXT NOT NULL,
    selector   TEXT NOT NULL,
    algorithm  INTEGER NOT NULL,
    private    BLOB NOT NULL,
    public     TEXT NOT NULL,
    active     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, domain, selector)
) WITHOUT ROWID;
