CREATE OR REPLACE FUNCTION "{schema}".payload_text(payload BYTEA) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(payload, 'UTF8')::json::text;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION "{schema}".payload_html(payload BYTEA) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(payload, 'UTF8')::json ->> 'html';
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
