-- How often the process died with a mail in hand. Mail that costs its worker its life is told from mail that fails.
ALTER TABLE inbound ADD COLUMN lost_leases BIGINT NOT NULL DEFAULT 0;
