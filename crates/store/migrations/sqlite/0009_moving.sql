-- locks: short
-- What movers look for in their table of tasks: the date that a mail bears, and how often it was tried in all. Mail from before this
-- step has neither.
ALTER TABLE inbound ADD COLUMN dated_at INTEGER;
ALTER TABLE inbound ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
