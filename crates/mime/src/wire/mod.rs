//! The form mail has on the wire: lines that end with CRLF and have at most 998 octets, and transfer
//! encodings for content that does not fit into such lines.

pub(crate) mod lines;
pub(crate) mod transfer_encoding;
