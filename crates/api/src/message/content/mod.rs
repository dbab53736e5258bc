//! Calls that return the content of a message: the request, the mail, its parts and files, and the receipts
//! of PEC.

pub(crate) mod mail_view;
pub(crate) mod parts;
pub(crate) mod payload;
pub(crate) mod pec;
pub(crate) mod pec_export;
pub(crate) mod raw;
