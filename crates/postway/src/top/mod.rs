//! `postway top`: queue, rates and problems, live in a terminal, over the API of a running server.
//!
//! [`SnapshotSource`] asks the server, [`StatusBoard`] decides what to show, [`draw`] and [`plain`] show it,
//! and [`screen`] manages the terminal. Every figure is the server's. If the server does not answer, the
//! screen says so, keeps the last figures, and asks again; a refused key ends the command.

mod attention;
mod board;
mod draw;
mod plain;
mod screen;
mod source;
#[cfg(test)]
mod tests;

pub use board::{StatusBoard, WatchedServer};
pub use plain::plain;
pub use screen::live;
pub use source::SnapshotSource;
