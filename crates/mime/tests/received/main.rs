//! What received mail is, by mails of every form that a recogniser knows; and that no mail does harm.

mod fixtures;
mod forms;
mod hostile;
mod random;
