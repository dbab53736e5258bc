//! Classifies mails of every format that a recogniser knows, and hostile mail.

mod fixtures;
mod forms;
mod hostile;
mod random;
