//! Fetches mails: one command asks for several, and the caller gets one at a time.
//!
//! Mails that are too large by the server's own word are not asked for. A mail that turns out to be too large
//! is skipped. If it is too large even to be skipped, it is reported and the session ends; the next session
//! continues behind it.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    command::{ImapCommand, uid_set},
    error::{ImapFault, MailboxError},
    list::ListedMail,
    response::{FetchedText, ImapResponse, StatusKind, StatusResponse},
    session::{ImapSession, by},
    wire::SKIP_BYTES_MAX,
};

/// The most mails that one command asks for, which also bounds its length.
const COMMAND_MAILS_MAX: usize = 250;

/// The result for one mail that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedMail {
    /// Its UID.
    pub uid: u32,
    /// The content of the mail, or the reason why it is missing.
    pub content: FetchedContent,
}

/// The content of a mail, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedContent {
    /// The mail, as stored on the server.
    Mail(Bytes),
    /// It is larger than allowed.
    TooLarge {
        /// Its size in octets, as the server says.
        size: u64,
    },
    /// It does not exist any more.
    Gone,
    /// The server lists it and does not deliver it, for this reason.
    Withheld(String),
}

/// A fetch under way. It must be read to its end before the session can be used again.
#[derive(Debug)]
pub struct MailFetchStream<'s> {
    session: &'s mut ImapSession,
    mail_bytes_max: usize,
    /// UIDs that were not asked for yet.
    waiting: VecDeque<u32>,
    /// UIDs that were asked for and not answered yet.
    asked: BTreeSet<u32>,
    /// The tag of the command under way.
    tag: Option<String>,
    /// Results that were not handed over yet.
    known: VecDeque<FetchedMail>,
    is_cut: bool,
}

impl ImapSession {
    /// Asks for these mails without marking them as seen. [`MailFetchStream::next`] gives exactly one result
    /// for each, in the server's order.
    pub fn fetch(&mut self, mails: &[ListedMail], mail_bytes_max: usize) -> MailFetchStream<'_> {
        let mut waiting = BTreeSet::new();
        let mut known = VecDeque::new();
        for mail in mails {
            if usize::try_from(mail.size).is_ok_and(|size| size <= mail_bytes_max) {
                waiting.insert(mail.uid);
            } else {
                known.push_back(FetchedMail {
                    uid: mail.uid,
                    content: FetchedContent::TooLarge { size: mail.size },
                });
            }
        }
        let waiting = waiting.into_iter().collect();
        let asked = BTreeSet::new();
        MailFetchStream { session: self, mail_bytes_max, waiting, asked, tag: None, known, is_cut: false }
    }
}

impl MailFetchStream<'_> {
    /// The next result; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<FetchedMail>, MailboxError> {
        let deadline = Instant::now() + self.session.deadlines.mail;
        let next = by(deadline, "whole mail", self.try_next()).await;
        next.map_err(|fault| fault.at(&self.session.server))
    }

    async fn try_next(&mut self) -> Result<Option<FetchedMail>, ImapFault> {
        loop {
            if let Some(fetched) = self.known.pop_front() {
                return Ok(Some(fetched));
            }
            if self.is_cut {
                return Err(ImapFault::TooMuch { what: "a mail to pass over", max: SKIP_BYTES_MAX });
            }
            let Some(tag) = self.tag.take() else {
                if self.waiting.is_empty() {
                    return Ok(None);
                }
                self.ask().await?;
                continue;
            };
            match self.session.hear(Some(self.mail_bytes_max)).await? {
                ImapResponse::Done { tag: done, state } => {
                    let state = self.session.end(&tag, &done, state)?;
                    self.settle(state).await?;
                    continue;
                }
                ImapResponse::Mail(mail) => {
                    self.is_cut = mail.is_cut;
                    self.take(mail.uid, mail.text)?;
                }
                _ => {}
            }
            self.tag = Some(tag);
        }
    }

    async fn ask(&mut self) -> Result<(), ImapFault> {
        let count = self.waiting.len().min(COMMAND_MAILS_MAX);
        self.asked = self.waiting.drain(..count).collect();
        let command = format!("UID FETCH {} (UID BODY.PEEK[])", uid_set(self.asked.iter().copied()));
        self.tag = Some(self.session.begin(command.as_bytes()).await?);
        Ok(())
    }

    /// Takes a mail that was asked for and not answered yet; drops any other.
    fn take(&mut self, uid: Option<u32>, text: Option<FetchedText>) -> Result<(), ImapFault> {
        let Some(text) = text else { return Ok(()) };
        let uid = uid.ok_or(ImapFault::Garbled("a mail without its UID"))?;
        // A mail that is said to be missing is asked for once more at the end.
        let content = match text {
            FetchedText::Whole(text) if text.len() > self.mail_bytes_max => {
                FetchedContent::TooLarge { size: text.len() as u64 }
            }
            FetchedText::Whole(text) => FetchedContent::Mail(text.into()),
            FetchedText::TooLong(size) => FetchedContent::TooLarge { size },
            FetchedText::Missing => return Ok(()),
        };
        if self.asked.remove(&uid) {
            self.known.push_back(FetchedMail { uid, content });
        }
        Ok(())
    }

    /// Decides for each mail that did not arrive whether it is gone or was withheld. A NOOP first lets the
    /// server report removals.
    async fn settle(&mut self, state: StatusResponse) -> Result<(), ImapFault> {
        if state.kind == StatusKind::Bad {
            return Err(state.refused("the texts of mails"));
        }
        if self.asked.is_empty() {
            return Ok(());
        }
        self.session.must("NOOP", ImapCommand::new("NOOP"), |_| {}).await?;
        let mut there = BTreeSet::new();
        let command = format!("UID FETCH {} (UID)", uid_set(self.asked.iter().copied()));
        self.session
            .must("a check of mails", ImapCommand::new(&command), |response| {
                if let ImapResponse::Mail(mail) = response {
                    there.extend(mail.uid.filter(|uid| self.asked.contains(uid)));
                }
            })
            .await?;
        for uid in std::mem::take(&mut self.asked) {
            let content = match there.contains(&uid) {
                true => FetchedContent::Withheld(state.words.clone()),
                false => FetchedContent::Gone,
            };
            self.known.push_back(FetchedMail { uid, content });
        }
        Ok(())
    }
}
