//! Imports one batch of rows: takes them, accepts their messages through the door, and marks them.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_store::StoreError;
use tokio::time::timeout;

use super::{
    accept::{self, AcceptedOffer, MessageOffer},
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowImportResult {
    /// Whether there may be more rows.
    pub has_more: bool,
    /// Whether some rows wait for an account that sends.
    pub has_waiting_rows: bool,
}

impl OutboxRunner {
    /// Imports at most `most` rows. If rows are large, `most` is lowered for the next batch.
    pub(super) async fn import_rows(
        &self,
        db: &mut dyn SourceDatabase,
        most: &mut u32,
    ) -> Result<RowImportResult, OutboxError> {
        let taken = db.take(*most).await?;
        if taken.rows.is_empty() {
            return Ok(RowImportResult::default());
        }
        let defaults =
            RowDefaults { from: self.source.from.as_deref(), account: self.source.account.as_deref() };
        let offer = |row: &OutboxRow| {
            let client_id = format!("outbox:{}:{}", self.source.name, row.id);
            let message = message(row, &client_id, defaults);
            MessageOffer { client_id, message: message.map(Bytes::from) }
        };
        let captures = self.capture_reason().await?;
        // Messages that name their account are accepted; the others would be captured, and wait.
        let (mut verdicts, mut seqs, mut offers) = (Vec::new(), Vec::new(), Vec::new());
        for row in &taken.rows {
            let offer = offer(row);
            match captures.filter(|_| !offer.names_account()) {
                Some(why) => verdicts.push(RowVerdict {
                    seq: row.seq,
                    status: "pending",
                    uid: None,
                    error: Some(why.to_owned()),
                }),
                None => {
                    seqs.push(row.seq);
                    offers.push(offer);
                }
            }
        }
        let waiting = verdicts.len();
        let answers = self.accept(&offers).await?;
        verdicts.extend(seqs.into_iter().zip(answers).map(|(seq, answer)| match answer {
            Ok(AcceptedOffer { uid, .. }) => {
                RowVerdict { seq, status: "accepted", uid: Some(uid.to_string()), error: None }
            }
            Err(fault) => RowVerdict { seq, status: "invalid", uid: None, error: Some(fault) },
        }));
        let now = self.clock().now();
        db.settle(&verdicts, now).await?;
        let accepted = verdicts.iter().filter(|verdict| verdict.uid.is_some()).count();
        if !offers.is_empty() {
            self.count_batch(offers.len(), accepted, now);
        }
        // Large rows are taken a few at a time.
        *most = match taken.has_more {
            true if verdicts.len() < *most as usize => verdicts.len().max(1) as u32,
            _ => (*most * 2).min(BATCH_ROWS),
        };
        // Waiting rows would be taken again at once.
        Ok(RowImportResult { has_more: taken.has_more && !offers.is_empty(), has_waiting_rows: waiting > 0 })
    }

    /// Why the sandbox would capture mail of this source that names no account, although nobody chose the
    /// sandbox; `None` if it would not.
    async fn capture_reason(&self) -> Result<Option<&'static str>, OutboxError> {
        match &self.source.account {
            Some(_) => Ok(None),
            None => Ok(self.door.capture_reason(self.tenant()).await?),
        }
    }

    /// Imports a batch of tokens.
    pub(super) async fn import_tokens(
        &self,
        db: &mut dyn SourceDatabase,
    ) -> Result<RowImportResult, OutboxError> {
        let (Some(mailer), Some(mut table)) = (&self.mailer, db.tokens()) else {
            return Ok(RowImportResult::default());
        };
        // A captured mail would activate no account and use up its token, so all tokens wait unchanged.
        if self.capture_reason().await?.is_some() {
            return Ok(RowImportResult { has_more: false, has_waiting_rows: table.has_waiting().await? });
        }
        let rows = table.take(BATCH_ROWS).await?;
        if rows.is_empty() {
            return Ok(RowImportResult::default());
        }
        let (mut verdicts, mut unlike) = self.mail_tokens(mailer, &rows, 0).await?;
        // A mail that was accepted before a crash, under an older secret key, has been sent: its link and
        // code count, not those that the new key would make. The door recognises its content.
        for generation in 1..mailer.generations() {
            if unlike.is_empty() {
                break;
            }
            let again: Vec<TokenRow> = unlike.iter().filter_map(|index| rows.get(*index)).cloned().collect();
            let (older, still_unlike) = self.mail_tokens(mailer, &again, generation).await?;
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
        table.settle(&verdicts).await?;
        self.count_batch(verdicts.len(), accepted, self.clock().now());
        Ok(RowImportResult { has_more: rows.len() == BATCH_ROWS as usize, has_waiting_rows: false })
    }

    /// Accepts the mails of tokens as made with one generation of the secret key. Returns a verdict for each
    /// token, and the indexes of those whose mail was accepted before with a different content.
    async fn mail_tokens(
        &self,
        mailer: &TokenMailer,
        rows: &[TokenRow],
        generation: usize,
    ) -> Result<(Vec<TokenVerdict>, Vec<usize>), OutboxError> {
        let sealed = mailer.seal(&self.door, rows, generation, self.clock().now()).await?;
        let (offers, mut verdicts): (Vec<MessageOffer>, Vec<_>) =
            sealed.into_iter().map(|SealedMail { offer, verdict }| (offer, verdict)).unzip();
        let answers = self.accept(&offers).await?;
        let mut unlike = Vec::new();
        for (index, (verdict, answer)) in verdicts.iter_mut().zip(answers).enumerate() {
            match answer {
                Ok(AcceptedOffer { uid, differs }) => {
                    verdict.uid = Some(uid.to_string());
                    unlike.extend(differs.then_some(index));
                }
                // Without a mail, there are no secrets to record.
                Err(fault) => {
                    *verdict = TokenVerdict { id: verdict.id, error: Some(fault), ..Default::default() }
                }
            }
        }
        Ok((verdicts, unlike))
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
