//! Lists a folder page by page, without the texts of its mails.
//!
//! A page is read by UID ranges as wide as the page is long. If a range has few mails, the next one is wider;
//! if it has none, the next mail is found by bisection. So a folder of a hundred mails among four billion
//! UIDs costs some dozens of commands, and a folder of a million mails is never listed at once.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    command::ImapCommand,
    error::{ImapFault, MailboxError},
    position::FirstMailSearch,
    response::{FetchResponse, ImapResponse},
    session::ImapSession,
};

/// The most mails of one page.
const PAGE_MAX: usize = 10_000;
/// The widest UID range of one command.
const WIDTH_MAX: u32 = 100_000;
/// The most ranges of one page.
const RANGES_MAX: u32 = 8;

/// A mail in a folder, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedMail {
    /// Its UID.
    pub uid: u32,
    /// Its size in octets, as the server says.
    pub size: u64,
    /// When it arrived in the mailbox, if the server sends a readable date.
    pub internal_date: Option<Timestamp>,
}

/// Some mails of a folder in the order of their UIDs, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPage {
    /// The mails.
    pub mails: Vec<ListedMail>,
    /// `mails` has every mail from the first UID asked for up to this one. The next page starts behind it.
    pub through: u32,
}

impl ImapSession {
    /// Lists the mails with the lowest UIDs from `first_uid` to `last_uid`, at most `limit`. There may be
    /// more although fewer are returned: [`FolderPage::through`] says how far this page reaches. Every page
    /// makes progress.
    pub async fn list(
        &mut self,
        first_uid: u32,
        last_uid: u32,
        limit: usize,
    ) -> Result<FolderPage, MailboxError> {
        self.try_list(first_uid.max(1), last_uid, limit).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_list(&mut self, first: u32, last: u32, limit: usize) -> Result<FolderPage, ImapFault> {
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
                    FirstMailSearch::At(uid) => (from, width) = (from.max(uid), narrow),
                    FirstMailSearch::Absent => from = last.saturating_add(1),
                    // The bisection failed; go on with wider ranges.
                    FirstMailSearch::Unknown => width = width.saturating_mul(8).min(WIDTH_MAX),
                },
                found => {
                    let wanted = u64::from(width) * (limit - mails.len()) as u64 / found as u64;
                    width = u32::try_from(wanted).unwrap_or(WIDTH_MAX).clamp(narrow, WIDTH_MAX);
                }
            }
        }
        Ok(page(mails, last.min(from - 1)))
    }

    /// Adds the mails of a range. If there are more than `limit`, only the lowest are kept and the UID of the
    /// last of them is returned.
    async fn range(
        &mut self,
        from: u32,
        to: u32,
        limit: usize,
        mails: &mut BTreeMap<u32, ListedMail>,
    ) -> Result<Option<u32>, ImapFault> {
        let mut is_full = false;
        let command = ImapCommand::new(&format!("UID FETCH {from}:{to} (UID RFC822.SIZE INTERNALDATE)"));
        self.must("a page of the folder", command, |response| {
            // A response without a size reports something else, such as changed flags.
            let ImapResponse::Mail(FetchResponse { uid: Some(uid), size: Some(size), date, .. }) = response
            else {
                return;
            };
            if (from..=to).contains(uid) {
                mails.insert(*uid, ListedMail { uid: *uid, size: *size, internal_date: *date });
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

fn page(mails: BTreeMap<u32, ListedMail>, through: u32) -> FolderPage {
    FolderPage { mails: mails.into_values().collect(), through }
}
