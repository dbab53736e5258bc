//! Pages of a folder: which mails there are, without their texts.
//!
//! A page is asked for by UID ranges as wide as it is long; the next range of the same page is wider where mails are few,
//! and where there are none at all the next mail is found by halving the folder. So a folder of a hundred mails among
//! four billion UIDs costs some dozens of commands, and one of a million never answers with all of them at once.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    command::Command,
    error::{Fault, MailboxError},
    position::Place,
    response::{Mail, Response},
    session::Session,
};

/// The most mails of one page.
const PAGE_MAX: usize = 10_000;
/// The most UIDs that one command asks for.
const WIDTH_MAX: u32 = 100_000;
/// The most ranges that one page asks for.
const RANGES_MAX: u32 = 8;

/// A mail in a folder, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Its UID.
    pub uid: u32,
    /// Its size in octets, as the server says.
    pub size: u64,
    /// When it came into the mailbox, where the server says so in a way that can be read.
    pub internal_date: Option<Timestamp>,
}

/// Some mails of a folder, in the order of their UIDs, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The mails.
    pub mails: Vec<Listed>,
    /// Every mail from the first UID asked for up to this one, with it, is in `mails`. The next page starts behind it.
    pub through: u32,
}

impl Session {
    /// The mails of lowest UID from `first_uid` to `last_uid`, at most `limit` of them, perhaps fewer although there are
    /// more: [`Page::through`] says how far this page reaches. It always gets further.
    pub async fn list(&mut self, first_uid: u32, last_uid: u32, limit: usize) -> Result<Page, MailboxError> {
        self.try_list(first_uid.max(1), last_uid, limit).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_list(&mut self, first: u32, last: u32, limit: usize) -> Result<Page, Fault> {
        let limit = limit.clamp(1, PAGE_MAX);
        let narrow = u32::try_from(limit).unwrap_or(WIDTH_MAX);
        let mut mails = BTreeMap::new();
        let (mut from, mut width) = (first, narrow);
        for _ in 0..RANGES_MAX {
            if from > last {
                return Ok(page(mails, last));
            }
            let to = last.min(from.saturating_add(width - 1));
            let before = mails.len();
            if let Some(through) = self.range(from, to, limit, &mut mails).await? {
                return Ok(page(mails, through));
            }
            if to == last || mails.len() == limit {
                return Ok(page(mails, to));
            }
            from = to + 1;
            match mails.len() - before {
                0 => match self.first_from(from).await? {
                    Place::At(uid) => (from, width) = (from.max(uid), narrow),
                    Place::Nowhere => from = last.saturating_add(1),
                    // Optimism failed; go on by wider steps.
                    Place::Unknown => width = width.saturating_mul(8).min(WIDTH_MAX),
                },
                found => {
                    let wanted = u64::from(width) * (limit - mails.len()) as u64 / found as u64;
                    width = u32::try_from(wanted).unwrap_or(WIDTH_MAX).clamp(narrow, WIDTH_MAX);
                }
            }
        }
        Ok(page(mails, last.min(from - 1)))
    }

    /// Adds the mails of a range. Where they become more than `limit`, only the lowest are kept, and the UID of the last
    /// of them is given.
    async fn range(
        &mut self,
        from: u32,
        to: u32,
        limit: usize,
        mails: &mut BTreeMap<u32, Listed>,
    ) -> Result<Option<u32>, Fault> {
        let mut is_full = false;
        let command = Command::new(&format!("UID FETCH {from}:{to} (UID RFC822.SIZE INTERNALDATE)"));
        self.must("a page of the folder", command, |response| {
            // What has no size was told for another reason: flags that somebody changed.
            let Response::Mail(Mail { uid: Some(uid), size: Some(size), date, .. }) = response else {
                return;
            };
            if (from..=to).contains(uid) {
                mails.insert(*uid, Listed { uid: *uid, size: *size, internal_date: *date });
            }
            if mails.len() > limit {
                is_full = true;
                mails.pop_last();
            }
        })
        .await?;
        Ok(mails.last_key_value().map(|(uid, _)| *uid).filter(|_| is_full))
    }
}

fn page(mails: BTreeMap<u32, Listed>, through: u32) -> Page {
    Page { mails: mails.into_values().collect(), through }
}
