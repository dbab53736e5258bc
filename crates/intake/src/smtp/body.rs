//! A mail as it comes in, in pieces, as long as there is room for it.

use std::sync::Arc;

use bytes::Bytes;

use super::memory_budget::{Budget, Share};

/// Why a mail was dropped while it came in. What is left of it is still read, and dropped too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It is larger than a mail may be.
    TooLarge,
    /// All sessions together hold as much as they may.
    NoRoom,
}

/// What has come so far.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Vec<u8>,
    /// Of all that has come, kept or not.
    length: usize,
    bytes_max: usize,
    share: Share,
    loss: Option<Loss>,
}

impl Body {
    pub(super) fn new(bytes_max: usize, budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), length: 0, bytes_max, share: budget.share(), loss: None }
    }

    /// Keeps the next piece, if the mail is not lost already.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.length = self.length.saturating_add(piece.len());
        if self.length > self.bytes_max {
            // Also of a mail that had no room: it need not be tried again.
            self.lose(Loss::TooLarge);
        } else if self.loss.is_none() && !self.share.cover(self.length) {
            self.lose(Loss::NoRoom);
        } else if self.loss.is_none() {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn lose(&mut self, loss: Loss) {
        self.loss = Some(loss);
        self.bytes = Vec::new();
        self.share = self.share.emptied();
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// The whole, and its share of the memory, to be kept as long as the bytes are.
    pub(super) fn into_parts(self) -> (Bytes, Share) {
        (Bytes::from(self.bytes), self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_that_is_too_large_holds_nothing() {
        let budget = Budget::new(1024 * 1024);
        let mut body = Body::new(10, &budget);
        body.push(b"0123456789");
        assert_eq!(body.loss(), None);
        body.push(b"x");
        assert_eq!(body.loss(), Some(Loss::TooLarge));
        assert!(budget.share().cover(1024 * 1024), "all of it is free again");
    }

    #[test]
    fn a_mail_without_room_is_told_apart() {
        let mut body = Body::new(10, &Budget::new(0));
        body.push(b"x");
        assert_eq!(body.loss(), Some(Loss::NoRoom));
    }
}
