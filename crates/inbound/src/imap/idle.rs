//! Waiting for new mail with IDLE (RFC 2177).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    error::{ImapFault, MailboxError},
    response::{ImapResponse, StatusKind},
    session::{ImapSession, by},
};

/// How long one IDLE lasts: servers may close a connection that is silent for half an hour.
const IDLE_MAX: Duration = Duration::from_secs(29 * 60);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleOutcome {
    /// Mails arrived or were removed. Select the folder again to see them.
    News,
    /// Nothing happened in time.
    Quiet,
}

impl ImapSession {
    /// Whether the server reports new mail by itself.
    pub fn has_idle(&self) -> bool {
        self.offered.idle
    }

    /// Waits until mails arrive in the selected folder or are removed, at most until `until`. Changes that
    /// the server reported since the folder was selected count too. Requires [`ImapSession::has_idle`].
    pub async fn idle(&mut self, until: Instant) -> Result<IdleOutcome, MailboxError> {
        self.try_idle(until).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_idle(&mut self, until: Instant) -> Result<IdleOutcome, ImapFault> {
        if !self.offered.idle {
            return Err(ImapFault::Refused { what: "IDLE", words: "it does not offer it".to_owned() });
        }
        loop {
            if std::mem::take(&mut self.has_news) {
                return Ok(IdleOutcome::News);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(IdleOutcome::Quiet);
            }
            self.idle_once(until.min(now + IDLE_MAX)).await?;
        }
    }

    /// One IDLE command, from its begin to its end.
    async fn idle_once(&mut self, until: Instant) -> Result<(), ImapFault> {
        let reply = self.deadlines.reply;
        let begun = by(Instant::now() + reply, "answer to IDLE", async {
            let tag = self.begin(b"IDLE").await?;
            loop {
                match self.hear(None).await? {
                    ImapResponse::GoAhead(_) => return Ok((tag, None)),
                    ImapResponse::Done { tag: done, state } => {
                        return self.end(&tag, &done, state).map(|state| (tag, Some(state)));
                    }
                    _ => {}
                }
            }
        });
        let (tag, refused) = begun.await?;
        if let Some(state) = refused {
            return Err(state.refused("IDLE"));
        }
        while !self.has_news {
            match timeout_at(until, self.wire.ready()).await {
                Ok(ready) => ready?,
                Err(_) => break,
            }
            if let ImapResponse::Done { tag: done, state } =
                by(Instant::now() + reply, "end of a response", self.hear(None)).await?
            {
                // The server ended IDLE by itself; the caller begins another one.
                let state = self.end(&tag, &done, state)?;
                return if state.kind == StatusKind::Ok { Ok(()) } else { Err(state.refused("IDLE")) };
            }
        }
        by(Instant::now() + reply, "end of IDLE", async {
            self.write_line(&[b"DONE"]).await?;
            loop {
                if let ImapResponse::Done { tag: done, state } = self.hear(None).await? {
                    let state = self.end(&tag, &done, state)?;
                    return if state.kind == StatusKind::Ok { Ok(()) } else { Err(state.refused("IDLE")) };
                }
            }
        })
        .await
    }
}
