//! What is done beside taking rows: counting those that wait, ending tokens, calling mails back, and looking after messages
//! of which nothing was heard.

use std::time::Duration;

use super::{
    database::SourceDb, error::OutboxError, runner::Outbox, token::Mailer, withdraw::withdraw, write_back,
};

/// Rows that wait are counted up to here.
const COUNTED_MAX: u32 = 10_000;
/// A message of which nothing was heard for so long is looked at.
const SILENT_FOR: Duration = Duration::from_secs(600);
/// How many of those are looked at together.
const SILENT_MAX: u32 = 100;
/// How many tokens are ended, and mails called back, in one statement.
const SLICE: u32 = 500;

impl Outbox {
    /// Does all of it once.
    pub(super) async fn keep_up(&self, db: &mut dyn SourceDb) -> Result<(), OutboxError> {
        let (waiting, lag) = (db.waiting(COUNTED_MAX).await?, db.lag_seconds().await?);
        let source = self.source.name.clone();
        metrics::gauge!("postway_outbox_lag_seconds", "source" => source).set(lag);
        self.board.write(|live| (live.waiting, live.lag_seconds) = (Some(waiting), Some(lag)));
        if let Some(mut tokens) = db.tokens() {
            while tokens.expire(SLICE).await? == u64::from(SLICE) {}
        }
        self.call_back(db).await?;
        self.look_after(db).await
    }

    /// Calls back the mails of tokens that have ended.
    pub(super) async fn call_back(&self, db: &mut dyn SourceDb) -> Result<(), OutboxError> {
        let Some(mut tokens) = db.tokens() else { return Ok(()) };
        loop {
            let wanted = tokens.withdrawals(SLICE).await?;
            let mut done = Vec::with_capacity(wanted.len());
            for (place, nonce) in &wanted {
                let settled = match Mailer::client_id(&self.source.name, nonce).parse() {
                    Ok(id) => withdraw(self.store(), self.tenant(), &id, self.clock().now()).await?,
                    Err(_) => true,
                };
                if settled {
                    done.push(*place);
                }
            }
            if !done.is_empty() {
                tokens.forget(&done).await?;
            }
            // Those on the wire are looked at the next time.
            if done.len() < SLICE as usize {
                return Ok(());
            }
        }
    }

    /// Asks about messages whose rows were told nothing for long: the feed may have been cut before the row had its
    /// message, or be too old.
    async fn look_after(&self, db: &mut dyn SourceDb) -> Result<(), OutboxError> {
        let now = self.clock().now();
        let silent = db.silent(now.minus(SILENT_FOR), SILENT_MAX).await?;
        if silent.is_empty() {
            return Ok(());
        }
        let news = write_back::look(self.store(), self.tenant(), &silent).await?;
        db.correct(&news, now).await
    }
}
