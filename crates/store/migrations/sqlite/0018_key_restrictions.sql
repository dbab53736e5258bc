-- locks: short
-- Whom a key may send from and to, as JSON. Keys from before this step are bound by nothing, and so are most after it.
ALTER TABLE api_key ADD COLUMN restrictions TEXT;
