-- locks: short
-- What SMTP submission keeps: what a sender wishes to be told about delivery (RFC 3461), as JSON, and what a key is proven against
-- without being shown (SCRAM-SHA-256). Mostly neither is there; keys from before this step have no verifier.
ALTER TABLE content ADD COLUMN dsn TEXT;
ALTER TABLE api_key ADD COLUMN scram BYTEA;
