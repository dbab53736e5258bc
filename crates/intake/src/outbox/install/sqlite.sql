-- The outbox of Postway: insert a row, and its mail goes out if your transaction commits.
CREATE TABLE IF NOT EXISTS postway_outbox (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    -- What the mail is known by, once and for all: the same id never gives a second mail.
    id           TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))) UNIQUE
                 CHECK (length(id) BETWEEN 1 AND 64 AND id NOT GLOB '*[^A-Za-z0-9._:@-]*'),
    -- What to send. Lists are one value, several with commas between them, or a JSON list. Times are in UTC, as text or
    -- as Unix seconds.
    "from"       TEXT,
    "to"         TEXT,
    cc           TEXT,
    bcc          TEXT,
    reply_to     TEXT,
    subject      TEXT,
    text         TEXT,
    html         TEXT,
    template     TEXT,
    variables    TEXT,
    headers      TEXT,
    metadata     TEXT,
    tags         TEXT,
    batch        TEXT,
    priority     TEXT,
    account      TEXT,
    external_id  TEXT,
    collapse_key TEXT,
    sensitive    INTEGER,
    send_at      ANY,
    expires_at   ANY,
    -- All of it, and whatever else a message has, as POST /v1/messages takes it; the columns above win.
    message      TEXT,
    created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    -- What became of it, written by Postway.
    status       TEXT NOT NULL DEFAULT 'pending',
    outcome      TEXT,
    error        TEXT,
    message_uid  TEXT,
    accepted_at  TEXT,
    sent_at      TEXT,
    updated_at   TEXT
);
CREATE INDEX IF NOT EXISTS postway_outbox_pending ON postway_outbox (seq) WHERE status IN ('pending', 'taken');
CREATE INDEX IF NOT EXISTS postway_outbox_message ON postway_outbox (message_uid) WHERE message_uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS postway_outbox_open ON postway_outbox (updated_at)
    WHERE status IN ('accepted', 'scheduled', 'in_doubt');

-- How far Postway has told what became of the rows.
CREATE TABLE IF NOT EXISTS postway_progress (
    source     TEXT PRIMARY KEY,
    page       INTEGER NOT NULL,
    entry      INTEGER NOT NULL,
    updated_at TEXT NOT NULL
);

DROP VIEW IF EXISTS postway_outbox_status;
CREATE VIEW postway_outbox_status AS
    SELECT id, status, outcome, error, message_uid, created_at, accepted_at, sent_at, updated_at
    FROM postway_outbox;
DROP VIEW IF EXISTS postway_outbox_summary;
CREATE VIEW postway_outbox_summary AS
    SELECT status, count(*) AS mails, min(created_at) AS oldest, max(created_at) AS newest
    FROM postway_outbox GROUP BY status;
