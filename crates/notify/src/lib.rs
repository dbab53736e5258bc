//! Telling: applications learn what became of their mail.
//!
//! A loop on the store like every room. What happened is made into notifications, one for each event and subscriber;
//! each is called until its subscriber has it, in order for each message, and no subscriber waits for another.
