-- Accounts and their tokens: a new account gets its activation mail in the transaction that makes it.
-- Tables that are there already are taken over as they are; what is missing is added.
CREATE SCHEMA IF NOT EXISTS {tables};

DO $$
BEGIN
    IF to_regtype('{tables}.account_status') IS NULL THEN
        CREATE TYPE {tables}.account_status AS ENUM ('provisioned', 'active', 'suspended');
    END IF;
    IF to_regtype('{tables}.token_action') IS NULL THEN
        CREATE TYPE {tables}.token_action AS ENUM ('activation', 'password_recovery');
    END IF;
END
$$;

-- Times are Unix seconds, in 64 bits.
CREATE TABLE IF NOT EXISTS {tables}.accounts (
    id                bigserial PRIMARY KEY,
    email             varchar(254) NOT NULL UNIQUE,
    status            {tables}.account_status NOT NULL DEFAULT 'provisioned',
    login             varchar(254) NOT NULL UNIQUE,
    created_at        bigint NOT NULL DEFAULT floor(extract(epoch FROM now())),
    status_changed_at bigint,
    activated_at      bigint,
    suspended_at      bigint,
    unsuspended_at    bigint
);

CREATE TABLE IF NOT EXISTS {tables}.tokens (
    id          bigserial PRIMARY KEY,
    action      {tables}.token_action NOT NULL,
    -- Yours, if you give them; Postway makes them otherwise. Gone once the mail is on its way.
    secret      bytea UNIQUE,
    code        varchar(5),
    account     bigint NOT NULL REFERENCES {tables}.accounts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    expires_at  bigint NOT NULL DEFAULT floor(extract(epoch FROM now())) + 900,
    consumed_at bigint,
    created_at  bigint NOT NULL DEFAULT floor(extract(epoch FROM now()))
);

-- Triggers of an earlier system on these tables do what ours do; ours are made below.
DROP TRIGGER IF EXISTS before_account_insert ON {tables}.accounts;
DROP TRIGGER IF EXISTS before_account_status_change ON {tables}.accounts;
DROP TRIGGER IF EXISTS after_token_consumed ON {tables}.tokens;
DROP TRIGGER IF EXISTS after_token_inserted ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_account_arrives ON {tables}.accounts;
DROP TRIGGER IF EXISTS postway_account_arrived ON {tables}.accounts;
DROP TRIGGER IF EXISTS postway_account_changes ON {tables}.accounts;
DROP TRIGGER IF EXISTS postway_account_changed ON {tables}.accounts;
DROP TRIGGER IF EXISTS postway_token_arrives ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_arrived ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_consuming ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_consumed ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_ended ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_gone ON {tables}.tokens;
DROP TRIGGER IF EXISTS postway_token_keeps ON {tables}.tokens;

-- 32-bit times end in 2038.
DO $$
DECLARE
    narrow record;
BEGIN
    FOR narrow IN
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = {tables_text} AND table_name IN ('accounts', 'tokens') AND data_type = 'integer'
          AND column_name IN ('created_at', 'status_changed_at', 'activated_at', 'suspended_at', 'unsuspended_at',
                              'expires_at', 'consumed_at')
    LOOP
        EXECUTE format('ALTER TABLE {tables}.%I ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %I TYPE bigint',
                       narrow.table_name, narrow.column_name, narrow.column_name);
    END LOOP;
END
$$;
ALTER TABLE {tables}.accounts ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now()));
ALTER TABLE {tables}.tokens
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now())),
    ALTER COLUMN expires_at SET DEFAULT floor(extract(epoch FROM now())) + 900,
    ALTER COLUMN secret DROP DEFAULT,
    ALTER COLUMN secret DROP NOT NULL,
    ALTER COLUMN code DROP DEFAULT,
    ALTER COLUMN code DROP NOT NULL,
    -- issued, mailed, consumed, expired or revoked.
    ADD COLUMN IF NOT EXISTS state text,
    -- What the mail is known by; secret and code are made of it, under a key that is not in this database.
    ADD COLUMN IF NOT EXISTS nonce uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN IF NOT EXISTS secret_hash bytea,
    ADD COLUMN IF NOT EXISTS link_hash bytea,
    ADD COLUMN IF NOT EXISTS code_hash bytea,
    ADD COLUMN IF NOT EXISTS attempts integer NOT NULL DEFAULT 0,
    -- What became of the mail.
    ADD COLUMN IF NOT EXISTS mail_status text,
    ADD COLUMN IF NOT EXISTS mail_error text,
    ADD COLUMN IF NOT EXISTS message_uid uuid,
    ADD COLUMN IF NOT EXISTS mailed_at bigint,
    ADD COLUMN IF NOT EXISTS sent_at bigint,
    ADD COLUMN IF NOT EXISTS revoked_at bigint;

-- Tokens from before: an earlier system's cursor says which of them it has mailed. Its table stays, under another name.
DO $$
DECLARE
    mailed bigint := 0;
BEGIN
    IF EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('{tables}.jobs') AND relkind = 'r') THEN
        EXECUTE 'SELECT coalesce(max(last_seq), 0) FROM {tables}.jobs' INTO mailed;
        ALTER TABLE {tables}.jobs RENAME TO jobs_before_postway;
    END IF;
    UPDATE {tables}.tokens
    SET state = CASE
        WHEN consumed_at IS NOT NULL THEN 'consumed'
        WHEN expires_at <= extract(epoch FROM now()) THEN 'expired'
        WHEN id <= mailed THEN 'mailed'
        ELSE 'issued' END,
        -- What was mailed before is verified by whoever mailed it.
        secret_hash = CASE WHEN id <= mailed AND secret IS NOT NULL THEN sha256(secret) END
    WHERE state IS NULL;
END
$$;
-- A table whose foreign keys are still to be checked cannot be altered.
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE {tables}.tokens ALTER COLUMN state SET DEFAULT 'issued', ALTER COLUMN state SET NOT NULL,
    DROP CONSTRAINT IF EXISTS tokens_state_known,
    ADD CONSTRAINT tokens_state_known CHECK (state IN ('issued', 'mailed', 'consumed', 'expired', 'revoked'));

CREATE INDEX IF NOT EXISTS tokens_issued ON {tables}.tokens (id) WHERE state = 'issued';
CREATE INDEX IF NOT EXISTS tokens_live ON {tables}.tokens (account, action) WHERE state IN ('issued', 'mailed');
CREATE INDEX IF NOT EXISTS tokens_ending ON {tables}.tokens (expires_at) WHERE state IN ('issued', 'mailed');
CREATE INDEX IF NOT EXISTS tokens_account ON {tables}.tokens (account);
CREATE INDEX IF NOT EXISTS tokens_message ON {tables}.tokens (message_uid) WHERE message_uid IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS tokens_secret_hash ON {tables}.tokens (secret_hash) WHERE secret_hash IS NOT NULL;
CREATE INDEX IF NOT EXISTS accounts_id_status ON {tables}.accounts (id, status);

-- Mails that are to be called back if they are still here: their tokens are gone or have ended.
CREATE TABLE IF NOT EXISTS {schema}.withdrawal (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    nonce      uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE OR REPLACE FUNCTION {schema}.token_hint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('token_insert', '');
    RETURN NULL;
END
$$;

-- An account that begins active or suspended has been so since now.
CREATE OR REPLACE FUNCTION {schema}.account_arrives() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ts bigint := floor(extract(epoch FROM now()));
BEGIN
    IF NEW.status = 'active' THEN
        NEW.activated_at := coalesce(NEW.activated_at, ts);
    ELSIF NEW.status = 'suspended' THEN
        NEW.suspended_at := coalesce(NEW.suspended_at, ts);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER postway_account_arrives BEFORE INSERT ON {tables}.accounts
    FOR EACH ROW EXECUTE FUNCTION {schema}.account_arrives();

-- After the insert, not before it: a row that ON CONFLICT turns away must not leave a token behind.
CREATE OR REPLACE FUNCTION {schema}.account_arrived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {tables}.tokens (account, action)
        SELECT id, 'activation'::{tables}.token_action FROM arrived WHERE status = 'provisioned' ORDER BY id;
    RETURN NULL;
END
$$;
CREATE TRIGGER postway_account_arrived AFTER INSERT ON {tables}.accounts
    REFERENCING NEW TABLE AS arrived
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.account_arrived();

CREATE OR REPLACE FUNCTION {schema}.account_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ts bigint := floor(extract(epoch FROM now()));
BEGIN
    IF NEW.status = OLD.status THEN
        RETURN NEW;
    END IF;
    NEW.status_changed_at := ts;
    IF NEW.status = 'suspended' THEN
        NEW.suspended_at := ts;
        NEW.unsuspended_at := NULL;
    ELSIF OLD.status = 'suspended' THEN
        NEW.unsuspended_at := ts;
        NEW.suspended_at := NULL;
        -- Whoever never was active has still to be activated.
        IF OLD.activated_at IS NULL THEN
            NEW.status := 'provisioned';
        END IF;
    ELSIF NEW.status = 'active' THEN
        NEW.activated_at := ts;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER postway_account_changes BEFORE UPDATE OF status ON {tables}.accounts
    FOR EACH ROW EXECUTE FUNCTION {schema}.account_changes();
-- Tokens of an account that is released are mailed now.
CREATE TRIGGER postway_account_changed AFTER UPDATE OF status ON {tables}.accounts
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.token_hint();

CREATE OR REPLACE FUNCTION {schema}.token_arrives() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.state := CASE WHEN NEW.consumed_at IS NULL THEN 'issued' ELSE 'consumed' END;
    NEW.attempts := 0;
    NEW.secret_hash := NULL;
    NEW.link_hash := NULL;
    NEW.code_hash := NULL;
    NEW.mail_status := NULL;
    NEW.message_uid := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER postway_token_arrives BEFORE INSERT ON {tables}.tokens
    FOR EACH ROW EXECUTE FUNCTION {schema}.token_arrives();

-- A newer token takes the place of the older ones of its kind. The account's lock makes two that come at once see each other.
CREATE OR REPLACE FUNCTION {schema}.token_arrived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM {tables}.accounts a WHERE a.id IN (SELECT account FROM arrived) ORDER BY a.id FOR NO KEY UPDATE;
    WITH newest AS (SELECT account, action, max(id) AS id FROM arrived GROUP BY account, action)
    UPDATE {tables}.tokens t
    SET state = 'revoked', revoked_at = floor(extract(epoch FROM now())), secret = NULL, code = NULL
    FROM newest n
    WHERE t.account = n.account AND t.action = n.action AND t.id <> n.id AND t.state IN ('issued', 'mailed');
    PERFORM pg_notify('token_insert', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER postway_token_arrived AFTER INSERT ON {tables}.tokens
    REFERENCING NEW TABLE AS arrived
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.token_arrived();

-- A token that has ended cannot be consumed: the update changes no row.
CREATE OR REPLACE FUNCTION {schema}.token_consuming() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state NOT IN ('issued', 'mailed') OR OLD.expires_at <= extract(epoch FROM now()) THEN
        RETURN NULL;
    END IF;
    NEW.state := 'consumed';
    NEW.secret := NULL;
    NEW.code := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER postway_token_consuming BEFORE UPDATE OF consumed_at ON {tables}.tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION {schema}.token_consuming();

CREATE OR REPLACE FUNCTION {schema}.token_consumed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {tables}.accounts SET status = 'active' WHERE id = NEW.account AND status = 'provisioned';
    -- Whoever is suspended at that moment stays so, and is active when she is released.
    UPDATE {tables}.accounts SET activated_at = floor(extract(epoch FROM now()))
    WHERE id = NEW.account AND status = 'suspended' AND activated_at IS NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER postway_token_consumed AFTER UPDATE OF consumed_at ON {tables}.tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL AND NEW.action = 'activation')
    EXECUTE FUNCTION {schema}.token_consumed();

-- What ended or is gone need not be mailed any more. One that is still issued may be on its way already.
CREATE OR REPLACE FUNCTION {schema}.token_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.withdrawal (nonce) VALUES (OLD.nonce);
    PERFORM pg_notify('token_insert', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER postway_token_ended AFTER UPDATE ON {tables}.tokens
    FOR EACH ROW WHEN (NEW.state IN ('consumed', 'revoked') AND OLD.state IN ('issued', 'mailed')
                       AND NEW.mail_status IS DISTINCT FROM 'sent')
    EXECUTE FUNCTION {schema}.token_ended();
CREATE TRIGGER postway_token_gone AFTER DELETE ON {tables}.tokens
    FOR EACH ROW WHEN (OLD.state IN ('issued', 'mailed') AND OLD.mail_status IS DISTINCT FROM 'sent')
    EXECUTE FUNCTION {schema}.token_ended();

-- The cursor of an earlier system. Each token has its state, and this is the highest that is not to be mailed any more.
CREATE OR REPLACE VIEW {tables}.jobs AS
    SELECT 'mailroom'::text AS job_type,
           coalesce((SELECT id FROM {tables}.tokens WHERE state <> 'issued' ORDER BY id DESC LIMIT 1), 0) AS last_seq;

-- Moving it back mails again what is live after it; moving it on passes over what was not mailed yet.
CREATE OR REPLACE FUNCTION {schema}.jobs_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ts bigint := floor(extract(epoch FROM now()));
    cursor_at bigint := coalesce(NEW.last_seq, 0);
BEGIN
    INSERT INTO {schema}.withdrawal (nonce)
        SELECT nonce FROM {tables}.tokens
        WHERE id > cursor_at AND state = 'mailed' AND expires_at > ts AND mail_status IS DISTINCT FROM 'sent';
    -- A new nonce is a new mail. Where no secret is kept it is also a new secret, and the link that is out ends.
    UPDATE {tables}.tokens
    SET state = 'issued', nonce = gen_random_uuid(), secret_hash = NULL, link_hash = NULL, code_hash = NULL, attempts = 0,
        mail_status = NULL, mail_error = NULL, message_uid = NULL, mailed_at = NULL, sent_at = NULL
    WHERE id > cursor_at AND state = 'mailed' AND expires_at > ts;
    UPDATE {tables}.tokens
    SET state = 'mailed', mail_status = 'skipped', secret_hash = CASE WHEN secret IS NOT NULL THEN sha256(secret) END
    WHERE id <= cursor_at AND state = 'issued';
    PERFORM pg_notify('token_insert', '');
    RETURN NEW;
END
$$;
DROP TRIGGER IF EXISTS postway_jobs_moved ON {tables}.jobs;
CREATE TRIGGER postway_jobs_moved INSTEAD OF UPDATE ON {tables}.jobs
    FOR EACH ROW EXECUTE FUNCTION {schema}.jobs_moved();

-- The live token that has this secret, which is not in the table itself.
CREATE OR REPLACE FUNCTION {schema}.token_by_secret(wanted bytea) RETURNS SETOF {tables}.tokens LANGUAGE sql STABLE AS $$
    SELECT * FROM {tables}.tokens
    WHERE state IN ('issued', 'mailed') AND expires_at > extract(epoch FROM now())
      AND (secret_hash = sha256(wanted) OR secret = wanted)
$$;
CREATE OR REPLACE VIEW {schema}.token_status AS
    SELECT id, account, action, state, mail_status, mail_error, message_uid, created_at, expires_at, mailed_at, sent_at,
           consumed_at, revoked_at
    FROM {tables}.tokens;
