//! The texts of mails, several in one command, one at a time to the caller.
//!
//! Mails that the server says are too large are not asked for. One that turns out to be too large is passed over; one so
//! large that it cannot be is still told, and then the session ends, so that the next one can begin behind it.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    command::{Command, uid_set},
    error::{Fault, MailboxError},
    list::Listed,
    response::{Kind, MailText, Response, State},
    session::{Session, by},
    wire::SKIP_BYTES_MAX,
};

/// The most mails that one command asks for, which also bounds its length.
const COMMAND_MAILS_MAX: usize = 250;

/// What became of one mail that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its UID.
    pub uid: u32,
    /// What there is of it.
    pub content: Content,
}

/// What there is of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The mail as it lies on the server.
    Mail(Bytes),
    /// It is larger than allowed.
    TooLarge {
        /// Its size in octets, as the server says.
        size: u64,
    },
    /// It is not there any more.
    Gone,
    /// The server lists it and does not give it, for this reason.
    Withheld(String),
}

/// Mails on their way. Must be read to its end for the session to be of further use.
#[derive(Debug)]
pub struct Fetch<'s> {
    session: &'s mut Session,
    mail_bytes_max: usize,
    /// Not asked for yet.
    waiting: VecDeque<u32>,
    /// Asked for and not answered yet.
    asked: BTreeSet<u32>,
    /// The command under way.
    tag: Option<String>,
    /// Known and not handed over yet.
    known: VecDeque<Fetched>,
    is_cut: bool,
}

impl Session {
    /// Asks for the texts of these mails, marking none as seen. Each one is answered for exactly once, in the server's
    /// order, by [`Fetch::next`].
    pub fn fetch(&mut self, mails: &[Listed], mail_bytes_max: usize) -> Fetch<'_> {
        let mut waiting = BTreeSet::new();
        let mut known = VecDeque::new();
        for mail in mails {
            if usize::try_from(mail.size).is_ok_and(|size| size <= mail_bytes_max) {
                waiting.insert(mail.uid);
            } else {
                known.push_back(Fetched { uid: mail.uid, content: Content::TooLarge { size: mail.size } });
            }
        }
        let waiting = waiting.into_iter().collect();
        let asked = BTreeSet::new();
        Fetch { session: self, mail_bytes_max, waiting, asked, tag: None, known, is_cut: false }
    }
}

impl Fetch<'_> {
    /// The next mail; `None` when all were answered for.
    pub async fn next(&mut self) -> Result<Option<Fetched>, MailboxError> {
        let deadline = Instant::now() + self.session.deadlines.mail;
        let next = by(deadline, "whole mail", self.try_next()).await;
        next.map_err(|fault| fault.at(&self.session.server))
    }

    async fn try_next(&mut self) -> Result<Option<Fetched>, Fault> {
        loop {
            if let Some(fetched) = self.known.pop_front() {
                return Ok(Some(fetched));
            }
            if self.is_cut {
                return Err(Fault::TooMuch { what: "a mail to pass over", max: SKIP_BYTES_MAX });
            }
            let Some(tag) = self.tag.take() else {
                if self.waiting.is_empty() {
                    return Ok(None);
                }
                self.ask().await?;
                continue;
            };
            match self.session.hear(Some(self.mail_bytes_max)).await? {
                Response::Done { tag: done, state } => {
                    let state = self.session.end(&tag, &done, state)?;
                    self.settle(state).await?;
                    continue;
                }
                Response::Mail(mail) => {
                    self.is_cut = mail.is_cut;
                    self.take(mail.uid, mail.text)?;
                }
                _ => {}
            }
            self.tag = Some(tag);
        }
    }

    async fn ask(&mut self) -> Result<(), Fault> {
        let count = self.waiting.len().min(COMMAND_MAILS_MAX);
        self.asked = self.waiting.drain(..count).collect();
        let command = format!("UID FETCH {} (UID BODY.PEEK[])", uid_set(self.asked.iter().copied()));
        self.tag = Some(self.session.begin(command.as_bytes()).await?);
        Ok(())
    }

    /// Takes a mail that was asked for and is still open; drops any other.
    fn take(&mut self, uid: Option<u32>, text: Option<MailText>) -> Result<(), Fault> {
        let Some(text) = text else { return Ok(()) };
        let uid = uid.ok_or(Fault::Garbled("a mail without its UID"))?;
        // One that is said to be missing is looked for once more at the end.
        let content = match text {
            MailText::Whole(text) if text.len() > self.mail_bytes_max => {
                Content::TooLarge { size: text.len() as u64 }
            }
            MailText::Whole(text) => Content::Mail(text.into()),
            MailText::TooLong(size) => Content::TooLarge { size },
            MailText::Missing => return Ok(()),
        };
        if self.asked.remove(&uid) {
            self.known.push_back(Fetched { uid, content });
        }
        Ok(())
    }

    /// Says of each mail that did not come whether it is gone or was withheld. The server is given the occasion to tell of
    /// removals before it is asked what is there.
    async fn settle(&mut self, state: State) -> Result<(), Fault> {
        if state.kind == Kind::Bad {
            return Err(state.refused("the texts of mails"));
        }
        if self.asked.is_empty() {
            return Ok(());
        }
        self.session.must("NOOP", Command::new("NOOP"), |_| {}).await?;
        let mut there = BTreeSet::new();
        let command = format!("UID FETCH {} (UID)", uid_set(self.asked.iter().copied()));
        self.session
            .must("a look at mails", Command::new(&command), |response| {
                if let Response::Mail(mail) = response {
                    there.extend(mail.uid.filter(|uid| self.asked.contains(uid)));
                }
            })
            .await?;
        for uid in std::mem::take(&mut self.asked) {
            let content = match there.contains(&uid) {
                true => Content::Withheld(state.words.clone()),
                false => Content::Gone,
            };
            self.known.push_back(Fetched { uid, content });
        }
        Ok(())
    }
}
