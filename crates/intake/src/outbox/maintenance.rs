//! Maintenance of a source: counts pending rows, expires tokens, withdraws mails, and updates rows that were
//! silent for long.

use std::time::Duration;

use super::{
    database::SourceDatabase, error::OutboxError, runner::OutboxRunner, token::TokenMailer,
    withdraw::withdraw, write_back,
};

/// Pending rows are counted up to this number.
const COUNTED_MAX: u32 = 10_000;
/// A row without an update for this long is refreshed.
const SILENT_FOR: Duration = Duration::from_secs(600);
/// How many silent rows are refreshed at once.
const SILENT_MAX: u32 = 100;
/// How many tokens are expired, and mails withdrawn, in one statement.
const SLICE: u32 = 500;

impl OutboxRunner {
    /// Does all maintenance once.
    pub(super) async fn maintain(&self, db: &mut dyn SourceDatabase) -> Result<(), OutboxError> {
        let (waiting, lag) = (db.waiting(COUNTED_MAX).await?, db.lag_seconds().await?);
        let source = self.source.name.clone();
        metrics::gauge!("postway_outbox_lag_seconds", "source" => source).set(lag);
        self.board.write(|live| (live.waiting, live.lag_seconds) = (Some(waiting), Some(lag)));
        if let Some(mut tokens) = db.tokens() {
            while tokens.expire(SLICE).await? == u64::from(SLICE) {}
        }
        self.withdraw_mails(db).await?;
        self.refresh_silent(db).await
    }

    /// Withdraws the mails of tokens that have ended.
    pub(super) async fn withdraw_mails(&self, db: &mut dyn SourceDatabase) -> Result<(), OutboxError> {
        let Some(mut tokens) = db.tokens() else { return Ok(()) };
        loop {
            let wanted = tokens.withdrawals(SLICE).await?;
            let mut done = Vec::with_capacity(wanted.len());
            for (seq, nonce) in &wanted {
                let settled = match TokenMailer::client_id(&self.source.name, nonce).parse() {
                    Ok(id) => withdraw(self.store(), self.tenant(), &id, self.clock().now()).await?,
                    Err(_) => true,
                };
                if settled {
                    done.push(*seq);
                }
            }
            if !done.is_empty() {
                tokens.forget(&done).await?;
            }
            // Mails that are being sent are tried again next time.
            if done.len() < SLICE as usize {
                return Ok(());
            }
        }
    }

    /// Updates rows that were silent for long: the feed may have passed before the row had its message, or
    /// its events may have been removed.
    async fn refresh_silent(&self, db: &mut dyn SourceDatabase) -> Result<(), OutboxError> {
        let now = self.clock().now();
        let silent = db.silent(now.minus(SILENT_FOR), SILENT_MAX).await?;
        if silent.is_empty() {
            return Ok(());
        }
        let updates = write_back::current_updates(self.store(), self.tenant(), &silent).await?;
        db.correct(&updates, now).await
    }
}
