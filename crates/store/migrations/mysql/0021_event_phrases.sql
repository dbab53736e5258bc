-- locks: none
-- Lists of events have marks for phrases that most of them share. Nothing changes but who may write.
SELECT 1;
