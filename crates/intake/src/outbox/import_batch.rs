//! One round: take some rows, have the door accept them, mark them.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_store::StoreError;
use tokio::time::timeout;

use super::{
    accept::{self, AcceptedOffer, Offer},
    database::{SourceDb, Verdict},
    error::OutboxError,
    postgres::{TokenRow, TokenVerdict},
    row::{Defaults, Row, message},
    runner::Outbox,
    token::{Mailer, Sealed},
};
use crate::accept::crash_point::crash_point;

/// Rows taken in one round at most.
pub(super) const ROUND_ROWS: u32 = 500;
/// The longest that accepting a round may take: its rows are locked meanwhile.
const ACCEPT_LASTS_MAX: Duration = Duration::from_secs(30);

/// How a round went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Whether there may be more to take.
    pub has_more: bool,
    /// Whether some were left to wait for an account that sends.
    pub holds: bool,
}

impl Outbox {
    /// Takes some rows, at most so many. Where rows are large fewer are taken the next time.
    pub(super) async fn round(&self, db: &mut dyn SourceDb, most: &mut u32) -> Result<Round, OutboxError> {
        let taken = db.take(*most).await?;
        if taken.rows.is_empty() {
            return Ok(Round::default());
        }
        let defaults =
            Defaults { from: self.source.from.as_deref(), account: self.source.account.as_deref() };
        let offer = |row: &Row| {
            let client_id = format!("outbox:{}:{}", self.source.name, row.id);
            let message = message(row, &client_id, defaults);
            Offer { client_id, message: message.map(Bytes::from) }
        };
        let captures = self.captures_unasked().await?;
        // What names its account goes by it; the rest would never leave, and waits.
        let (mut verdicts, mut seqs, mut offers) = (Vec::new(), Vec::new(), Vec::new());
        for row in &taken.rows {
            let offer = offer(row);
            match captures.filter(|_| !offer.names_account()) {
                Some(why) => verdicts.push(Verdict {
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
        let held = verdicts.len();
        let answers = self.accept(&offers).await?;
        verdicts.extend(seqs.into_iter().zip(answers).map(|(seq, answer)| match answer {
            Ok(AcceptedOffer { uid, .. }) => {
                Verdict { seq, status: "accepted", uid: Some(uid.to_string()), error: None }
            }
            Err(fault) => Verdict { seq, status: "invalid", uid: None, error: Some(fault) },
        }));
        let now = self.clock().now();
        db.settle(&verdicts, now).await?;
        let accepted = verdicts.iter().filter(|verdict| verdict.uid.is_some()).count();
        if !offers.is_empty() {
            self.took(offers.len(), accepted, now);
        }
        // Large rows come few at a time.
        *most = match taken.has_more {
            true if verdicts.len() < *most as usize => verdicts.len().max(1) as u32,
            _ => (*most * 2).min(ROUND_ROWS),
        };
        // Those that wait would be taken again at once.
        Ok(Round { has_more: taken.has_more && !offers.is_empty(), holds: held > 0 })
    }

    /// Why mail of this source that names no account would be captured although nobody chose that, if it would be.
    async fn captures_unasked(&self) -> Result<Option<&'static str>, OutboxError> {
        match &self.source.account {
            Some(_) => Ok(None),
            None => Ok(self.door.captures_unasked(self.tenant()).await?),
        }
    }

    /// The same for tokens.
    pub(super) async fn token_round(&self, db: &mut dyn SourceDb) -> Result<Round, OutboxError> {
        let (Some(mailer), Some(mut table)) = (&self.mailer, db.tokens()) else {
            return Ok(Round::default());
        };
        // A mail that the sandbox took activates nobody, and its token would be used up: they all wait, and stay as they are.
        if self.captures_unasked().await?.is_some() {
            return Ok(Round { has_more: false, holds: table.has_waiting().await? });
        }
        let rows = table.take(ROUND_ROWS).await?;
        if rows.is_empty() {
            return Ok(Round::default());
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
        Ok(Round { has_more: rows.len() == ROUND_ROWS as usize, holds: false })
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
