-- The outbox of Postway: insert a row, and its mail goes out if your transaction commits.
CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {schema}.outbox (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What the mail is known by, once and for all: the same id never gives a second mail.
    id           text NOT NULL DEFAULT gen_random_uuid()::text UNIQUE
                 CONSTRAINT outbox_id_form CHECK (id ~ '^[A-Za-z0-9._:@-]{1,64}$'),
    -- What to send. Lists are one value, several with commas between them, or a JSON list.
    "from"       text,
    "to"         text,
    cc           text,
    bcc          text,
    reply_to     text,
    subject      text,
    text         text,
    html         text,
    template     text,
    variables    jsonb,
    headers      jsonb,
    metadata     jsonb,
    tags         text,
    batch        text,
    priority     text,
    account      text,
    external_id  text,
    collapse_key text,
    sensitive    boolean,
    send_at      timestamptz,
    expires_at   timestamptz,
    -- All of it, and whatever else a message has, as POST /v1/messages takes it; the columns above win.
    message      jsonb,
    created_at   timestamptz NOT NULL DEFAULT now(),
    -- What became of it, written by Postway.
    status       text NOT NULL DEFAULT 'pending',
    outcome      text,
    error        text,
    message_uid  uuid,
    accepted_at  timestamptz,
    sent_at      timestamptz,
    updated_at   timestamptz
);

CREATE INDEX IF NOT EXISTS outbox_pending ON {schema}.outbox (seq) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS outbox_message ON {schema}.outbox (message_uid) WHERE message_uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_open ON {schema}.outbox (updated_at)
    WHERE status IN ('accepted', 'scheduled', 'in_doubt');

-- How far Postway has told what became of the rows.
CREATE TABLE IF NOT EXISTS {schema}.progress (
    source     text PRIMARY KEY,
    page       bigint NOT NULL,
    entry      bigint NOT NULL,
    updated_at timestamptz NOT NULL
);

-- A hint and nothing more: rows are found without it, a little later.
CREATE OR REPLACE FUNCTION {schema}.outbox_hint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('postway_outbox', '');
    RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS outbox_inserted ON {schema}.outbox;
CREATE TRIGGER outbox_inserted AFTER INSERT ON {schema}.outbox
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.outbox_hint();
DROP TRIGGER IF EXISTS outbox_again ON {schema}.outbox;
CREATE TRIGGER outbox_again AFTER UPDATE OF status ON {schema}.outbox
    FOR EACH ROW WHEN (NEW.status = 'pending' AND OLD.status <> 'pending')
    EXECUTE FUNCTION {schema}.outbox_hint();

CREATE OR REPLACE VIEW {schema}.outbox_status AS
    SELECT id, status, outcome, error, message_uid, created_at, accepted_at, sent_at, updated_at
    FROM {schema}.outbox;
CREATE OR REPLACE VIEW {schema}.outbox_summary AS
    SELECT status, count(*) AS mails, min(created_at) AS oldest, max(created_at) AS newest
    FROM {schema}.outbox GROUP BY status;
