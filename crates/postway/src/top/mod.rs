//! `postway top`: how the mail is doing, live in a terminal, over the API of a running server.
//!
//! [`SnapshotSource`] asks, [`StatusBoard`] says what is to be seen, [`draw`] and [`plain`] show it, [`screen`] keeps the terminal. Nothing
//! is decided here: every figure is the server's. A server that is away is said to be away, with the last figures
//! left standing, and asked again; a key that is refused ends the command.

mod amount;
mod attention;
mod board;
mod draw;
mod plain;
mod screen;
mod source;
#[cfg(test)]
mod tests;

pub use amount::{span, wait};
pub use board::{StatusBoard, WatchedServer};
pub use plain::plain;
pub use screen::live;
pub use source::SnapshotSource;
