-- locks: short
-- The receiving domains that limit the mail of a lane, if some do: its mail waits for them as a whole. Older programs make lanes without
-- them, and claim from these as from any other.
ALTER TABLE lane ADD COLUMN destination TEXT;
