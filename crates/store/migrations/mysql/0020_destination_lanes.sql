-- locks: short
-- The receiving domains that limit the mail of a lane, if some do: its mail waits for them as a whole. Older programs make lanes without
-- them, and claim from these as from any other. Written so that it can be run again.
SET @add_column = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
    AND table_name = 'lane' AND column_name = 'destination') = 0,
    'ALTER TABLE lane ADD COLUMN destination TEXT', 'DO 0');
PREPARE add_column FROM @add_column;
EXECUTE add_column;
DEALLOCATE PREPARE add_column;
