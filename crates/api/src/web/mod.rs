//! What people open in a browser without an API key of their own: the dashboard, the page to unsubscribe, and
//! files behind signed links.

pub(crate) mod dashboard;
pub(crate) mod hook;
pub(crate) mod linked_file;
pub(crate) mod unsubscribe;
