-- locks: short
-- Events that are written together share a row: the first, and a list of the others, [[kind, data], ...], beside it.
ALTER TABLE event ADD COLUMN more TEXT;
