//! A session: one command after the other, each with its responses, each before a deadline.
//!
//! A session is in step as long as every command was read to its end. A session that is out of step refuses
//! to go on, because the next response belongs to another command.

use std::{future::Future, time::Duration};

use postway_net::NetStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    capability::ImapCapabilities,
    command::ImapCommand,
    connection::ImapDeadlines,
    error::{ImapFault, MailboxError},
    response::{ImapResponse, StatusKind, StatusResponse},
    utf7,
    wire::ImapOctetStream,
};

/// How long the logout may take.
const LOGOUT_MAX: Duration = Duration::from_secs(2);
/// The most responses to one command: a page of the widest range, and as many unsolicited responses. A server
/// that has more removals to report has none to report to the next session.
const RESPONSES_MAX: u64 = 250_000;

/// A signed-in session with a server.
#[derive(Debug)]
pub struct ImapSession {
    pub(super) wire: ImapOctetStream<NetStream>,
    pub(super) server: String,
    pub(super) offered: ImapCapabilities,
    pub(super) deadlines: ImapDeadlines,
    /// The number of mails in the folder.
    pub(super) exists: u32,
    /// Whether the folder changed since it was selected.
    pub(super) has_news: bool,
    goodbye: Option<String>,
    is_in_step: bool,
    tags: u32,
    responses: u64,
}

/// The status of a selected folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderStatus {
    /// UIDs identify mails only as long as this value is the same.
    pub uid_validity: u32,
    /// The UID of the next mail, or a lower bound of it.
    pub uid_next: u32,
    /// The number of mails.
    pub exists: u32,
}

impl ImapSession {
    pub(super) fn over(stream: NetStream, server: &str, deadlines: ImapDeadlines) -> Self {
        Self {
            wire: ImapOctetStream::new(stream),
            server: server.to_owned(),
            offered: ImapCapabilities::default(),
            deadlines,
            exists: 0,
            has_news: false,
            goodbye: None,
            is_in_step: true,
            tags: 0,
            responses: 0,
        }
    }

    /// Selects a folder; selecting it again shows changes. A missing folder is a fault of the settings.
    pub async fn select(&mut self, folder: &str) -> Result<FolderStatus, MailboxError> {
        self.try_select(folder).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_select(&mut self, folder: &str) -> Result<FolderStatus, ImapFault> {
        utf7::check(folder)?;
        self.exists = 0;
        let (mut uid_validity, mut uid_next) = (None, None);
        let done = self
            .run(ImapCommand::new("SELECT").folder(folder), |response| {
                if let ImapResponse::Status(state) = response {
                    uid_validity = uid_validity.or(state.number("UIDVALIDITY"));
                    uid_next = uid_next.or(state.number("UIDNEXT"));
                }
            })
            .await?;
        match done.kind {
            StatusKind::Ok => {}
            StatusKind::No if !done.is_passing() => {
                return Err(ImapFault::NoFolder { folder: folder.to_owned(), words: done.words });
            }
            StatusKind::No | StatusKind::Bad | StatusKind::Bye | StatusKind::Preauth => {
                return Err(done.refused("SELECT"));
            }
        }
        self.has_news = false;
        let uid_validity = uid_validity.filter(|validity| *validity > 0);
        let uid_validity = uid_validity.ok_or(ImapFault::Garbled("a folder without UIDVALIDITY"))?;
        let uid_next = match uid_next.filter(|next| *next > 0) {
            Some(next) => next,
            None => self.find_uid_next(folder).await?,
        };
        Ok(FolderStatus { uid_validity, uid_next, exists: self.exists })
    }

    /// For servers that do not report UIDNEXT on SELECT: asks STATUS, and falls back to the last mail's UID.
    async fn find_uid_next(&mut self, folder: &str) -> Result<u32, ImapFault> {
        let mut reported = None;
        self.run(ImapCommand::new("STATUS").folder(folder).then(" (UIDNEXT)"), |response| {
            if let ImapResponse::UidNext(next) = response {
                reported = Some(*next);
            }
        })
        .await?;
        if let Some(next) = reported {
            return Ok(next);
        }
        if self.exists == 0 {
            return Ok(1);
        }
        let last = self.probe(self.exists).await?.and_then(|mail| mail.uid);
        let last = last.ok_or(ImapFault::Garbled("a folder without UIDNEXT"))?;
        Ok(last.saturating_add(1))
    }

    /// Logs out and closes the connection, within two seconds. Nothing depends on whether the server answers.
    pub async fn logout(mut self) {
        if self.is_in_step {
            self.deadlines.reply = LOGOUT_MAX;
            self.run(ImapCommand::new("LOGOUT"), |_| {}).await.ok();
            timeout(LOGOUT_MAX, self.wire.shutdown()).await.ok();
        }
    }

    /// Runs a command to its end and passes every other response to `each`. The caller judges the final
    /// status.
    pub(super) async fn run(
        &mut self,
        command: ImapCommand,
        each: impl FnMut(&ImapResponse),
    ) -> Result<StatusResponse, ImapFault> {
        let deadline = Instant::now() + self.deadlines.reply;
        by(deadline, "answer to a command", self.converse(&command, each)).await
    }

    /// Like [`ImapSession::run`], for commands whose refusal is a fault.
    pub(super) async fn must(
        &mut self,
        what: &'static str,
        command: ImapCommand,
        each: impl FnMut(&ImapResponse),
    ) -> Result<(), ImapFault> {
        let done = self.run(command, each).await?;
        if done.kind == StatusKind::Ok { Ok(()) } else { Err(done.refused(what)) }
    }

    async fn converse(
        &mut self,
        command: &ImapCommand,
        mut each: impl FnMut(&ImapResponse),
    ) -> Result<StatusResponse, ImapFault> {
        let mut chunks = command.chunks.iter();
        let first = chunks.next().map_or(&[][..], |chunk| chunk.as_slice());
        let tag = self.begin(first).await?;
        let mut has_answered = false;
        loop {
            match self.hear(None).await? {
                ImapResponse::Done { tag: done, state } => return self.end(&tag, &done, state),
                go_ahead @ ImapResponse::GoAhead(_) => match (chunks.next(), command.consent) {
                    (Some(chunk), _) => self.write_line(&[chunk]).await?,
                    (None, Some(consent)) if !has_answered => {
                        has_answered = true;
                        each(&go_ahead);
                        self.write_line(&[consent.as_bytes()]).await?;
                    }
                    (None, _) => return Err(ImapFault::Garbled("it waits for more than there is")),
                },
                other => each(&other),
            }
        }
    }

    /// Sends a command's first line and returns its tag. From here to [`ImapSession::end`] the session is out
    /// of step.
    pub(super) async fn begin(&mut self, command: &[u8]) -> Result<String, ImapFault> {
        if !std::mem::replace(&mut self.is_in_step, false) {
            return Err(ImapFault::OutOfStep);
        }
        self.tags = self.tags.wrapping_add(1);
        self.responses = 0;
        let tag = format!("A{}", self.tags);
        self.write_line(&[tag.as_bytes(), b" ", command]).await?;
        Ok(tag)
    }

    pub(super) async fn write_line(&mut self, parts: &[&[u8]]) -> Result<(), ImapFault> {
        let mut line = secrecy::zeroize::Zeroizing::new(Vec::with_capacity(
            parts.iter().map(|part| part.len()).sum::<usize>() + 2,
        ));
        for part in parts {
            line.extend_from_slice(part);
        }
        line.extend_from_slice(b"\r\n");
        self.wire.write(&line).await
    }

    /// Reads one response and notes what it says about the folder.
    pub(super) async fn hear(&mut self, text_bytes_max: Option<usize>) -> Result<ImapResponse, ImapFault> {
        self.responses += 1;
        if self.responses > RESPONSES_MAX {
            return Err(ImapFault::TooMuch { what: "a number of responses", max: RESPONSES_MAX });
        }
        let raw =
            self.wire.response(text_bytes_max).await.map_err(|fault| match (fault, self.goodbye.take()) {
                (ImapFault::Closed | ImapFault::Io(_), Some(words)) => ImapFault::Bye(words),
                (fault, _) => fault,
            })?;
        let response = ImapResponse::read(raw)?;
        match &response {
            ImapResponse::Exists(count) => {
                self.has_news |= *count != self.exists;
                self.exists = *count;
            }
            ImapResponse::Expunge => {
                self.has_news = true;
                self.exists = self.exists.saturating_sub(1);
            }
            ImapResponse::Status(state) if state.kind == StatusKind::Bye => {
                self.goodbye = Some(state.words.clone())
            }
            _ => {}
        }
        Ok(response)
    }

    /// Ends a command: the session is in step again.
    pub(super) fn end(
        &mut self,
        tag: &str,
        done: &str,
        state: StatusResponse,
    ) -> Result<StatusResponse, ImapFault> {
        if done != tag {
            return Err(ImapFault::Garbled("the end of a command that was not given"));
        }
        self.is_in_step = true;
        Ok(state)
    }
}

/// Awaits `step` until the deadline.
pub(super) async fn by<T>(
    deadline: Instant,
    what: &'static str,
    step: impl Future<Output = Result<T, ImapFault>>,
) -> Result<T, ImapFault> {
    timeout_at(deadline, step).await.unwrap_or(Err(ImapFault::Timeout(what)))
}
