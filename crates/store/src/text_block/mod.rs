//! Text blocks: the subjects, addresses and metadata of about a thousand messages of a tenant in one compressed
//! row, which a search reads instead of the messages' own rows.
//!
//! Promises:
//! - a search finds the same with and without blocks: a block only says which messages may match, their rows
//!   decide, and where there is no block the rows themselves are read;
//! - accepting mail writes no block. One node plans and fills them later, in slices;
//! - a block contains nothing that its messages do not contain any more. Whoever removes or changes a text empties
//!   the block in the same transaction, and it is filled again later.
//!
//! A block is planned empty, and filled once every transaction that began before the plan must be over. Its
//! generation is raised whenever it is emptied, so that texts which were read before an erasure are not written
//! after it. Blocks of a tenant are in the order of ids, without gaps, from the oldest message on; the newest
//! messages have none.

pub(crate) mod emptying;
pub(crate) mod form;
pub(crate) mod upkeep;

use std::time::Duration;

pub(crate) use self::{
    emptying::{empty_blocks_of, empty_blocks_with},
    form::SearchNeedles,
    upkeep::{FilledTextBlock, PlannedTextBlock, TextBlockWalk},
};
#[cfg(test)]
use crate::sql::SqlText;

/// The number of messages of a block when it is planned. Mail whose commit came late may add some.
pub(crate) const BLOCK_MESSAGES: usize = 1_024;
/// The most bytes of text that a block is made of. Messages beyond that are read for every search.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;
/// How old mail is when a block is planned over it, and how old a plan is when it is carried out. Longer than a
/// transaction takes, and than the clocks of nodes may differ.
pub(crate) const SETTLES_IN: Duration = Duration::from_secs(60);

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    [emptying::statements(), upkeep::statements()].concat()
}
