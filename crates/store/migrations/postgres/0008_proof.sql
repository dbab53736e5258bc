-- Reports without proof are events of their own (30). The schema is as it was: this step keeps programs from writing that would
-- take such an event for damage.
SELECT 0;
