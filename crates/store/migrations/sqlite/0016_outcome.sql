-- locks: by table size
-- Messages whose recipients bounced, complained or were reached are found by what became of them. Most recipients have no outcome and are
-- not in it.
CREATE INDEX recipient_outcome ON recipient (outcome, uid) WHERE outcome IS NOT NULL;
