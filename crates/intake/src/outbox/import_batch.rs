//! Imports one batch of rows: takes them, accepts their messages through the door, and marks them.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_store::StoreError;
use tokio::time::timeout;

use super::{
    accept::{self, AcceptedOffer, MessageOffer, UnacceptedOffer},
    database::{RowVerdict, SourceDatabase},
    error::OutboxError,
    postgres::{TokenRow, TokenVerdict},
    row::{OutboxRow, RowDefaults, message},
    runner::OutboxRunner,
    token::{SealedMail, TokenMailer},
};
use crate::accept::crash_point::crash_point;

/// The most rows of one batch.
pub(super) const BATCH_ROWS: u32 = 500;
/// The longest time for accepting a batch: its rows are locked meanwhile.
const ACCEPT_LASTS_MAX: Duration = Duration::from_secs(30);

/// The result of a batch.
#[derive(Clone, Debug, Default)]
pub(super) struct RowImportResult {
    /// Whether there may be more rows.
    pub has_more: bool,
    /// The `seq` or id of the last one that was taken: those that wait are passed over by going on after it.
    pub last: i64,
    /// Why some of them wait for an account that sends.
    pub waits: Option<String>,
}

/// The result of handing the mails of some tokens to the door.
struct SealedBatch {
    /// A verdict for each token, in order.
    verdicts: Vec<TokenVerdict>,
    /// The indexes of those whose mail was accepted before with a different content.
    unlike: Vec<usize>,
    /// The indexes of those that wait for an account that sends, and why.
    waiting: Vec<(usize, String)>,
}

impl OutboxRunner {
    /// Imports at most `most` rows with a `seq` above `after`. If rows are large, `most` is lowered for the
    /// next batch.
    pub(super) async fn import_rows(
        &self,
        db: &mut dyn SourceDatabase,
        after: i64,
        most: &mut u32,
    ) -> Result<RowImportResult, OutboxError> {
        let taken = db.take(after, *most).await?;
        let Some(last) = taken.rows.last().map(|row| row.seq) else { return Ok(RowImportResult::default()) };
        let defaults =
            RowDefaults { from: self.source.from.as_deref(), account: self.source.account.as_deref() };
        let offer = |row: &OutboxRow| {
            let client_id = format!("outbox:{}:{}", self.source.name, row.id);
            let message = message(row, &client_id, defaults);
            MessageOffer { client_id, message: message.map(Bytes::from) }
        };
        let captures = self.capture_reason().await?;
        // Messages that name their account, or that a route takes, are accepted; the others would be
        // captured, and wait.
        let (mut verdicts, mut seqs, mut offers) = (Vec::new(), Vec::new(), Vec::new());
        for row in &taken.rows {
            let offer = offer(row);
            match captures.filter(|_| !offer.names_account()) {
                Some(why) => verdicts.push(RowVerdict::waiting(row.seq, why.to_owned())),
                None => {
                    seqs.push(row.seq);
                    offers.push(offer);
                }
            }
        }
        let answers = self.accept(&offers).await?;
        verdicts.extend(seqs.into_iter().zip(answers).map(|(seq, answer)| match answer {
            Ok(AcceptedOffer { uid, .. }) => {
                RowVerdict { seq, status: "accepted", uid: Some(uid.to_string()), error: None }
            }
            Err(UnacceptedOffer::Invalid(fault)) => {
                RowVerdict { seq, status: "invalid", uid: None, error: Some(fault) }
            }
            Err(UnacceptedOffer::Waits(why)) => RowVerdict::waiting(seq, why),
        }));
        let now = self.clock().now();
        db.settle(&verdicts, now).await?;
        let accepted = verdicts.iter().filter(|verdict| verdict.uid.is_some()).count();
        let ended = verdicts.iter().filter(|verdict| !verdict.waits()).count();
        if ended > 0 {
            self.count_batch(ended, accepted, now);
        }
        // Large rows are taken a few at a time.
        *most = match taken.has_more {
            true if verdicts.len() < *most as usize => verdicts.len().max(1) as u32,
            _ => (*most * 2).min(BATCH_ROWS),
        };
        let waits = verdicts.into_iter().find(RowVerdict::waits).and_then(|verdict| verdict.error);
        Ok(RowImportResult { has_more: taken.has_more, last, waits })
    }

    /// Why the sandbox would capture mail of this source that names no account, although nobody chose the
    /// sandbox; `None` if it would not.
    async fn capture_reason(&self) -> Result<Option<&'static str>, OutboxError> {
        match &self.source.account {
            Some(_) => Ok(None),
            None => Ok(self.door.capture_reason(self.tenant()).await?),
        }
    }

    /// Imports a batch of tokens with an id above `after`.
    pub(super) async fn import_tokens(
        &self,
        db: &mut dyn SourceDatabase,
        after: i64,
    ) -> Result<RowImportResult, OutboxError> {
        let (Some(mailer), Some(mut table)) = (&self.mailer, db.tokens()) else {
            return Ok(RowImportResult::default());
        };
        // A captured mail would activate no account and use up its token, so all tokens wait unchanged.
        if let Some(why) = self.capture_reason().await? {
            let waits = table.has_waiting().await?.then(|| why.to_owned());
            return Ok(RowImportResult { waits, ..RowImportResult::default() });
        }
        let rows = table.take(after, BATCH_ROWS).await?;
        let Some(last) = rows.last().map(|row| row.id) else { return Ok(RowImportResult::default()) };
        let SealedBatch { mut verdicts, mut unlike, waiting } = self.mail_tokens(mailer, &rows, 0).await?;
        // A mail that was accepted before a crash, under an older secret key, has been sent: its link and
        // code count, not those that the new key would make. The door recognises its content.
        for generation in 1..mailer.generations() {
            if unlike.is_empty() {
                break;
            }
            let again: Vec<TokenRow> = unlike.iter().filter_map(|index| rows.get(*index)).cloned().collect();
            let SealedBatch { verdicts: older, unlike: still_unlike, .. } =
                self.mail_tokens(mailer, &again, generation).await?;
            let mut left = Vec::new();
            for (position, (index, verdict)) in unlike.iter().zip(older).enumerate() {
                match (still_unlike.contains(&position), verdicts.get_mut(*index)) {
                    (false, Some(slot)) => *slot = verdict,
                    _ => left.push(*index),
                }
            }
            unlike = left;
        }
        let accepted = verdicts.iter().filter(|verdict| verdict.uid.is_some()).count();
        // What has no verdict stays as it is.
        let waits = waiting.first().map(|(_, why)| why.clone());
        for (index, _) in waiting.into_iter().rev() {
            verdicts.remove(index);
        }
        table.settle(&verdicts).await?;
        if !verdicts.is_empty() {
            self.count_batch(verdicts.len(), accepted, self.clock().now());
        }
        Ok(RowImportResult { has_more: rows.len() == BATCH_ROWS as usize, last, waits })
    }

    /// Accepts the mails of tokens as made with one generation of the secret key.
    async fn mail_tokens(
        &self,
        mailer: &TokenMailer,
        rows: &[TokenRow],
        generation: usize,
    ) -> Result<SealedBatch, OutboxError> {
        let sealed = mailer.seal(&self.door, rows, generation, self.clock().now()).await?;
        let (offers, mut verdicts): (Vec<MessageOffer>, Vec<_>) =
            sealed.into_iter().map(|SealedMail { offer, verdict }| (offer, verdict)).unzip();
        let answers = self.accept(&offers).await?;
        let (mut unlike, mut waiting) = (Vec::new(), Vec::new());
        for (index, (verdict, answer)) in verdicts.iter_mut().zip(answers).enumerate() {
            match answer {
                Ok(AcceptedOffer { uid, differs }) => {
                    verdict.uid = Some(uid.to_string());
                    unlike.extend(differs.then_some(index));
                }
                // Without a mail, there are no secrets to record.
                Err(UnacceptedOffer::Invalid(fault)) => {
                    *verdict = TokenVerdict { id: verdict.id, error: Some(fault), ..Default::default() }
                }
                Err(UnacceptedOffer::Waits(why)) => waiting.push((index, why)),
            }
        }
        Ok(SealedBatch { verdicts, unlike, waiting })
    }

    async fn accept(&self, offers: &[MessageOffer]) -> Result<Vec<accept::OfferAnswer>, OutboxError> {
        let accepting = accept::accept(&self.door, self.tenant(), &self.source.name, offers);
        let late = |_| StoreError::Unavailable("accepting took too long".to_owned());
        let answers = timeout(ACCEPT_LASTS_MAX, accepting).await.map_err(late)??;
        crash_point("outbox_after_accept");
        Ok(answers)
    }

    /// Counts a batch.
    fn count_batch(&self, rows: usize, accepted: usize, now: Time) {
        let source = self.source.name.clone();
        metrics::histogram!("postway_outbox_batch_rows", "source" => source).record(rows as f64);
        self.count("accepted", accepted);
        self.count("invalid", rows - accepted);
        self.board.write(|live| {
            live.accepted += accepted as u64;
            live.invalid += (rows - accepted) as u64;
            live.last_taken_at = Some(now);
        });
    }

    /// Counts rows by outcome.
    fn count(&self, outcome: &'static str, rows: usize) {
        if rows > 0 {
            let source = self.source.name.clone();
            metrics::counter!("postway_outbox_rows_total", "source" => source, "outcome" => outcome)
                .increment(rows as u64);
        }
    }
}
