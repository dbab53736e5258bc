//! A session: commands one after another, each with its responses, each before a deadline.
//!
//! A session is in step as long as every command it began was heard to its end. One that is not refuses to go on: what
//! comes next on the wire belongs to somebody else's question.

use std::{future::Future, time::Duration};

use postway_net::Stream;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    capability::Capabilities,
    command::Command,
    connection::Deadlines,
    error::{Fault, MailboxError},
    response::{Kind, Response, State},
    utf7,
    wire::Wire,
};

/// How long the goodbye may take.
const LOGOUT_MAX: Duration = Duration::from_secs(2);
/// The most responses to one command: a page of the widest range, and as much again of what nobody asked for. A server
/// that has more to tell, of mails removed, has nothing to tell to the next session.
const RESPONSES_MAX: u64 = 250_000;

/// A signed-in session with a server.
#[derive(Debug)]
pub struct Session {
    pub(super) wire: Wire<Stream>,
    pub(super) server: String,
    pub(super) offered: Capabilities,
    pub(super) deadlines: Deadlines,
    /// How many mails the folder has.
    pub(super) exists: u32,
    /// The folder changed since somebody looked.
    pub(super) has_news: bool,
    goodbye: Option<String>,
    is_in_step: bool,
    tags: u32,
    responses: u64,
}

/// A folder as it is when it is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folder {
    /// UIDs mean the same mail as long as this is the same.
    pub uid_validity: u32,
    /// The UID that the next mail gets, or a later one.
    pub uid_next: u32,
    /// How many mails there are.
    pub exists: u32,
}

impl Session {
    pub(super) fn over(stream: Stream, server: &str, deadlines: Deadlines) -> Self {
        Self {
            wire: Wire::new(stream),
            server: server.to_owned(),
            offered: Capabilities::default(),
            deadlines,
            exists: 0,
            has_news: false,
            goodbye: None,
            is_in_step: true,
            tags: 0,
            responses: 0,
        }
    }

    /// Opens a folder; again for the same one to learn of changes. A folder that is not there is a fault of the set-up.
    pub async fn select(&mut self, folder: &str) -> Result<Folder, MailboxError> {
        self.try_select(folder).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_select(&mut self, folder: &str) -> Result<Folder, Fault> {
        utf7::check(folder)?;
        self.exists = 0;
        let (mut uid_validity, mut uid_next) = (None, None);
        let done = self
            .run(Command::new("SELECT").folder(folder), |response| {
                if let Response::State(state) = response {
                    uid_validity = uid_validity.or(state.number("UIDVALIDITY"));
                    uid_next = uid_next.or(state.number("UIDNEXT"));
                }
            })
            .await?;
        match done.kind {
            Kind::Ok => {}
            Kind::No if !done.is_passing() => {
                return Err(Fault::NoFolder { folder: folder.to_owned(), words: done.words });
            }
            Kind::No | Kind::Bad | Kind::Bye | Kind::Preauth => return Err(done.refused("SELECT")),
        }
        self.has_news = false;
        let uid_validity = uid_validity.filter(|validity| *validity > 0);
        let uid_validity = uid_validity.ok_or(Fault::Garbled("a folder without UIDVALIDITY"))?;
        let uid_next = match uid_next.filter(|next| *next > 0) {
            Some(next) => next,
            None => self.find_uid_next(folder).await?,
        };
        Ok(Folder { uid_validity, uid_next, exists: self.exists })
    }

    /// For servers that do not tell UIDNEXT on their own: STATUS, and the last mail's UID where that fails too.
    async fn find_uid_next(&mut self, folder: &str) -> Result<u32, Fault> {
        let mut told = None;
        self.run(Command::new("STATUS").folder(folder).then(" (UIDNEXT)"), |response| {
            if let Response::UidNext(next) = response {
                told = Some(*next);
            }
        })
        .await?;
        if let Some(next) = told {
            return Ok(next);
        }
        if self.exists == 0 {
            return Ok(1);
        }
        let last = self.probe(self.exists).await?.and_then(|mail| mail.uid);
        let last = last.ok_or(Fault::Garbled("a folder without UIDNEXT"))?;
        Ok(last.saturating_add(1))
    }

    /// Says goodbye and closes, within two seconds. Nothing depends on whether the server hears it.
    pub async fn logout(mut self) {
        if self.is_in_step {
            self.deadlines.reply = LOGOUT_MAX;
            self.run(Command::new("LOGOUT"), |_| {}).await.ok();
            timeout(LOGOUT_MAX, self.wire.shutdown()).await.ok();
        }
    }

    /// Runs a command to its end and shows every other response to `each`. The verdict is the caller's to judge.
    pub(super) async fn run(
        &mut self,
        command: Command,
        each: impl FnMut(&Response),
    ) -> Result<State, Fault> {
        let deadline = Instant::now() + self.deadlines.reply;
        by(deadline, "answer to a command", self.converse(&command, each)).await
    }

    /// Like [`Session::run`], for commands whose refusal is a fault.
    pub(super) async fn must(
        &mut self,
        what: &'static str,
        command: Command,
        each: impl FnMut(&Response),
    ) -> Result<(), Fault> {
        let done = self.run(command, each).await?;
        if done.kind == Kind::Ok { Ok(()) } else { Err(done.refused(what)) }
    }

    async fn converse(&mut self, command: &Command, mut each: impl FnMut(&Response)) -> Result<State, Fault> {
        let mut chunks = command.chunks.iter();
        let first = chunks.next().map_or(&[][..], |chunk| chunk.as_slice());
        let tag = self.begin(first).await?;
        let mut has_answered = false;
        loop {
            match self.hear(None).await? {
                Response::Done { tag: done, state } => return self.end(&tag, &done, state),
                go_ahead @ Response::GoAhead(_) => match (chunks.next(), command.consent) {
                    (Some(chunk), _) => self.write_line(&[chunk]).await?,
                    (None, Some(consent)) if !has_answered => {
                        has_answered = true;
                        each(&go_ahead);
                        self.write_line(&[consent.as_bytes()]).await?;
                    }
                    (None, _) => return Err(Fault::Garbled("it waits for more than there is")),
                },
                other => each(&other),
            }
        }
    }

    /// Sends a command's first line and gives its tag. From here to [`Session::end`] the session is out of step.
    pub(super) async fn begin(&mut self, command: &[u8]) -> Result<String, Fault> {
        if !std::mem::replace(&mut self.is_in_step, false) {
            return Err(Fault::OutOfStep);
        }
        self.tags = self.tags.wrapping_add(1);
        self.responses = 0;
        let tag = format!("A{}", self.tags);
        self.write_line(&[tag.as_bytes(), b" ", command]).await?;
        Ok(tag)
    }

    pub(super) async fn write_line(&mut self, parts: &[&[u8]]) -> Result<(), Fault> {
        let mut line = secrecy::zeroize::Zeroizing::new(Vec::with_capacity(
            parts.iter().map(|part| part.len()).sum::<usize>() + 2,
        ));
        for part in parts {
            line.extend_from_slice(part);
        }
        line.extend_from_slice(b"\r\n");
        self.wire.write(&line).await
    }

    /// Reads one response and takes note of what it says about the folder.
    pub(super) async fn hear(&mut self, text_bytes_max: Option<usize>) -> Result<Response, Fault> {
        self.responses += 1;
        if self.responses > RESPONSES_MAX {
            return Err(Fault::TooMuch { what: "a number of responses", max: RESPONSES_MAX });
        }
        let raw =
            self.wire.response(text_bytes_max).await.map_err(|fault| match (fault, self.goodbye.take()) {
                (Fault::Closed | Fault::Io(_), Some(words)) => Fault::Bye(words),
                (fault, _) => fault,
            })?;
        let response = Response::read(raw)?;
        match &response {
            Response::Exists(count) => {
                self.has_news |= *count != self.exists;
                self.exists = *count;
            }
            Response::Expunge => {
                self.has_news = true;
                self.exists = self.exists.saturating_sub(1);
            }
            Response::State(state) if state.kind == Kind::Bye => self.goodbye = Some(state.words.clone()),
            _ => {}
        }
        Ok(response)
    }

    /// Ends a command: the session is in step again.
    pub(super) fn end(&mut self, tag: &str, done: &str, state: State) -> Result<State, Fault> {
        if done != tag {
            return Err(Fault::Garbled("the end of a command that was not given"));
        }
        self.is_in_step = true;
        Ok(state)
    }
}

/// What `step` gives before the deadline.
pub(super) async fn by<T>(
    deadline: Instant,
    what: &'static str,
    step: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    timeout_at(deadline, step).await.unwrap_or(Err(Fault::Timeout(what)))
}
