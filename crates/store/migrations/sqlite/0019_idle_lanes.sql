-- locks: none
-- Since when no message refers to a lane; a lane that stays so for a while is removed. Older programs leave it empty.
ALTER TABLE lane ADD COLUMN idle_since INTEGER;
