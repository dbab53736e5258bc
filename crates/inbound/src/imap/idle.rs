//! Waiting for news (RFC 2177).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    error::{Fault, MailboxError},
    response::{Kind, Response},
    session::{Session, by},
};

/// How long one IDLE lasts: servers may end what has been still for half an hour.
const IDLE_MAX: Duration = Duration::from_secs(29 * 60);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Mails came or went. Select the folder again to see.
    News,
    /// Nothing happened in time.
    Quiet,
}

impl Session {
    /// Whether the server tells of news by itself.
    pub fn has_idle(&self) -> bool {
        self.offered.idle
    }

    /// Waits for mails to come or go in the selected folder, until then. What the server told of since the folder was
    /// selected counts too. Only where [`Session::has_idle`].
    pub async fn idle(&mut self, until: Instant) -> Result<Woken, MailboxError> {
        self.try_idle(until).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_idle(&mut self, until: Instant) -> Result<Woken, Fault> {
        if !self.offered.idle {
            return Err(Fault::Refused { what: "IDLE", words: "it does not offer it".to_owned() });
        }
        loop {
            if std::mem::take(&mut self.has_news) {
                return Ok(Woken::News);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(Woken::Quiet);
            }
            self.idle_once(until.min(now + IDLE_MAX)).await?;
        }
    }

    /// One IDLE, from the command to its end.
    async fn idle_once(&mut self, until: Instant) -> Result<(), Fault> {
        let reply = self.deadlines.reply;
        let begun = by(Instant::now() + reply, "answer to IDLE", async {
            let tag = self.begin(b"IDLE").await?;
            loop {
                match self.hear(None).await? {
                    Response::GoAhead(_) => return Ok((tag, None)),
                    Response::Done { tag: done, state } => {
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
            if let Response::Done { tag: done, state } =
                by(Instant::now() + reply, "end of a response", self.hear(None)).await?
            {
                // It ended the wait by itself; the caller begins another one.
                let state = self.end(&tag, &done, state)?;
                return if state.kind == Kind::Ok { Ok(()) } else { Err(state.refused("IDLE")) };
            }
        }
        by(Instant::now() + reply, "end of IDLE", async {
            self.write_line(&[b"DONE"]).await?;
            loop {
                if let Response::Done { tag: done, state } = self.hear(None).await? {
                    let state = self.end(&tag, &done, state)?;
                    return if state.kind == Kind::Ok { Ok(()) } else { Err(state.refused("IDLE")) };
                }
            }
        })
        .await
    }
}
