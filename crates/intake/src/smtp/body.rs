//! A mail that arrives in pieces, within the memory budget.

use std::sync::Arc;

use bytes::Bytes;

use super::memory_budget::{MailMemoryBudget, MailMemoryShare};

/// Why a mail was dropped while it arrived. The rest of it is still read, and dropped too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MailLoss {
    /// The mail is larger than allowed.
    TooLarge,
    /// All sessions together have used up the memory budget.
    NoRoom,
}

/// The part of a mail that has arrived.
#[derive(Debug)]
pub(super) struct IncomingMail {
    bytes: Vec<u8>,
    /// The length of everything that arrived, stored or dropped.
    length: usize,
    bytes_max: usize,
    share: MailMemoryShare,
    loss: Option<MailLoss>,
}

impl IncomingMail {
    pub(super) fn new(bytes_max: usize, budget: &Arc<MailMemoryBudget>) -> Self {
        Self { bytes: Vec::new(), length: 0, bytes_max, share: budget.share(), loss: None }
    }

    /// Appends the next piece, unless the mail was dropped.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.length = self.length.saturating_add(piece.len());
        if self.length > self.bytes_max {
            // This also replaces `NoRoom`: there is no point in trying again.
            self.lose(MailLoss::TooLarge);
        } else if self.loss.is_none() && !self.share.cover(self.length) {
            self.lose(MailLoss::NoRoom);
        } else if self.loss.is_none() {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn lose(&mut self, loss: MailLoss) {
        self.loss = Some(loss);
        self.bytes = Vec::new();
        self.share = self.share.new_empty();
    }

    pub(super) fn loss(&self) -> Option<MailLoss> {
        self.loss
    }

    /// The mail and its share of the memory budget, which must live as long as the bytes.
    pub(super) fn into_parts(self) -> (Bytes, MailMemoryShare) {
        (Bytes::from(self.bytes), self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_that_is_too_large_holds_nothing() {
        let budget = MailMemoryBudget::new(1024 * 1024);
        let mut body = IncomingMail::new(10, &budget);
        body.push(b"0123456789");
        assert_eq!(body.loss(), None);
        body.push(b"x");
        assert_eq!(body.loss(), Some(MailLoss::TooLarge));
        assert!(budget.share().cover(1024 * 1024), "all of it is free again");
    }

    #[test]
    fn a_mail_without_room_is_told_apart() {
        let mut body = IncomingMail::new(10, &MailMemoryBudget::new(0));
        body.push(b"x");
        assert_eq!(body.loss(), Some(MailLoss::NoRoom));
    }
}
