-- From which version of the schema on a program may write; NULL means the migration's own. Nodes themselves are kept in
-- memory here: one process per file.
ALTER TABLE schema_migration ADD COLUMN writable_from INTEGER;
