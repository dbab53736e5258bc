//! One round: take some rows, have the door accept them, mark them.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_store::StoreError;
use tokio::time::timeout;

use super::{
    accept::{self, AcceptedOffer, Offer},
    crash::crash_point,
    database::{SourceDb, Verdict},
    error::OutboxError,
    message::{Defaults, Row, message},
    postgres::{TokenRow, TokenVerdict},
    runner::Outbox,
    token::{Mailer, Sealed},
};

/// Rows taken in one round at most.
pub(super) const ROUND_ROWS: u32 = 500;
/// The longest that accepting a round may take: its rows are locked meanwhile.
const ACCEPT_LASTS_MAX: Duration = Duration::from_secs(30);

impl Outbox {
    /// Takes some rows, at most so many; whether there may be more. Where rows are large fewer are taken the next time.
    pub(super) async fn round(&self, db: &mut dyn SourceDb, most: &mut u32) -> Result<bool, OutboxError> {
        let taken = db.take(*most).await?;
        if taken.rows.is_empty() {
            return Ok(false);
        }
        let defaults =
            Defaults { from: self.source.from.as_deref(), account: self.source.account.as_deref() };
        let offer = |row: &Row| {
            let client_id = format!("outbox:{}:{}", self.source.name, row.id);
            let message = message(row, &client_id, defaults);
            Offer { client_id, message: message.map(Bytes::from) }
        };
        let offers: Vec<Offer> = taken.rows.iter().map(offer).collect();
        let answers = self.accept(&offers).await?;
        let verdicts = taken.rows.iter().zip(answers).map(|(row, answer)| match answer {
            Ok(AcceptedOffer { uid, .. }) => {
                Verdict { seq: row.seq, status: "accepted", uid: Some(uid.to_string()), error: None }
            }
            Err(fault) => Verdict { seq: row.seq, status: "invalid", uid: None, error: Some(fault) },
        });
        let verdicts: Vec<Verdict> = verdicts.collect();
        let now = self.clock().now();
        db.settle(&verdicts, now).await?;
        self.took(verdicts.len(), verdicts.iter().filter(|verdict| verdict.uid.is_some()).count(), now);
        // Large rows come few at a time.
        *most = match taken.has_more {
            true if verdicts.len() < *most as usize => verdicts.len().max(1) as u32,
            _ => (*most * 2).min(ROUND_ROWS),
        };
        Ok(taken.has_more)
    }

    /// The same for tokens.
    pub(super) async fn token_round(&self, db: &mut dyn SourceDb) -> Result<bool, OutboxError> {
        let (Some(mailer), Some(mut table)) = (&self.mailer, db.tokens()) else { return Ok(false) };
        let rows = table.take(ROUND_ROWS).await?;
        if rows.is_empty() {
            return Ok(false);
        }
        let (mut verdicts, mut unlike) = self.mail_tokens(mailer, &rows, 0).await?;
        // A mail that was accepted before a crash, and under an older secret key, is out: its link and code hold, and not
        // those that the new key would make. The door knows its content again.
        for generation in 1..mailer.generations() {
            if unlike.is_empty() {
                break;
            }
            let again: Vec<TokenRow> = unlike.iter().filter_map(|index| rows.get(*index)).cloned().collect();
            let (older, still_unlike) = self.mail_tokens(mailer, &again, generation).await?;
            let mut left = Vec::new();
            for (place, (index, verdict)) in unlike.iter().zip(older).enumerate() {
                match (still_unlike.contains(&place), verdicts.get_mut(*index)) {
                    (false, Some(slot)) => *slot = verdict,
                    _ => left.push(*index),
                }
            }
            unlike = left;
        }
        let accepted = verdicts.iter().filter(|verdict| verdict.uid.is_some()).count();
        table.settle(&verdicts).await?;
        self.took(verdicts.len(), accepted, self.clock().now());
        Ok(rows.len() == ROUND_ROWS as usize)
    }

    /// Has the mails of tokens accepted as one generation of the secret key makes them: what becomes of each token, and the
    /// places of those whose mail was there already with another content.
    async fn mail_tokens(
        &self,
        mailer: &Mailer,
        rows: &[TokenRow],
        generation: usize,
    ) -> Result<(Vec<TokenVerdict>, Vec<usize>), OutboxError> {
        let sealed = mailer.seal(&self.door, rows, generation, self.clock().now()).await?;
        let (offers, mut verdicts): (Vec<Offer>, Vec<_>) =
            sealed.into_iter().map(|Sealed { offer, verdict }| (offer, verdict)).unzip();
        let answers = self.accept(&offers).await?;
        let mut unlike = Vec::new();
        for (place, (verdict, answer)) in verdicts.iter_mut().zip(answers).enumerate() {
            match answer {
                Ok(AcceptedOffer { uid, differs }) => {
                    verdict.uid = Some(uid.to_string());
                    unlike.extend(differs.then_some(place));
                }
                // Nothing of a mail that there is not.
                Err(fault) => {
                    *verdict = TokenVerdict { id: verdict.id, error: Some(fault), ..Default::default() }
                }
            }
        }
        Ok((verdicts, unlike))
    }

    async fn accept(&self, offers: &[Offer]) -> Result<Vec<accept::Answer>, OutboxError> {
        let accepting = accept::accept(&self.door, self.tenant(), &self.source.name, offers);
        let late = |_| StoreError::Unavailable("accepting took too long".to_owned());
        let answers = timeout(ACCEPT_LASTS_MAX, accepting).await.map_err(late)??;
        crash_point("outbox_after_accept");
        Ok(answers)
    }

    /// Counts a round.
    fn took(&self, rows: usize, accepted: usize, now: Time) {
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

    /// Counts what became of rows.
    fn count(&self, outcome: &'static str, rows: usize) {
        if rows > 0 {
            let source = self.source.name.clone();
            metrics::counter!("postway_outbox_rows_total", "source" => source, "outcome" => outcome)
                .increment(rows as u64);
        }
    }
}
