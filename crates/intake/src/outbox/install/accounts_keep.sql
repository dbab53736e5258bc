
-- Secrets and codes are made with their token and stay in its row while it is live, for an application that looks them up
-- itself. Whoever reads this table can use every link that is out.
ALTER TABLE {tables}.tokens
    -- 244 random bits in 32 bytes; gen_random_bytes needs an extension.
    ALTER COLUMN secret SET DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    ALTER COLUMN code SET DEFAULT
        lpad((('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint % 100000)::text, 5, '0');

-- The mail takes them out of the row, and this puts them back. They go when the token ends.
CREATE OR REPLACE FUNCTION {schema}.token_keeps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.secret := coalesce(NEW.secret, OLD.secret);
    NEW.code := coalesce(NEW.code, OLD.code);
    RETURN NEW;
END
$$;
CREATE TRIGGER postway_token_keeps BEFORE UPDATE ON {tables}.tokens
    FOR EACH ROW WHEN (NEW.state = 'mailed' AND OLD.state = 'issued')
    EXECUTE FUNCTION {schema}.token_keeps();
