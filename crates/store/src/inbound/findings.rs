//! What inbound mail and reported events say about sent messages: events, outcomes of recipients,
//! suppressions, receipts.
//!
//! All of it is written in the transaction that settles the mail or the event, set-wise over all of the call.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use postway_domain::{EventKind, MessageUid, Time, inbound::replaces_outcome};

use super::{append_events::MessageHistories, claim::ids, receipts};
use crate::{
    admin,
    error::StoreError,
    journal::{EventJournal, suppression_changes},
    record::{FindingOrigin, MessageFinding, NewReceipt, SuppressionOrigin, SuppressionRecord},
    sql::{
        SqlSession,
        decode::coded,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

static SHOWN: MultiRow = MultiRow::of_pieces(
    "SELECT uid, position, outcome, bounce FROM recipient WHERE ",
    "(uid = ? AND position = ?)",
    " OR ",
    "",
);
static SHOW: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(
        "UPDATE recipient SET outcome = v.column3, bounce = v.column4 FROM (VALUES ",
        4,
        ") AS v WHERE recipient.uid = v.column1 AND recipient.position = v.column2",
    ),
    postgres: MultiRow::of_pieces(
        "UPDATE recipient SET outcome = v.column3, bounce = v.column4 FROM (VALUES ",
        "(CAST(? AS BYTEA),CAST(? AS BIGINT),CAST(? AS BIGINT),CAST(? AS TEXT))",
        ",",
        ") AS v WHERE recipient.uid = v.column1 AND recipient.position = v.column2",
    ),
    mysql: MultiRow::of_pieces(
        "UPDATE (",
        "SELECT CAST(? AS BINARY(16)) AS uid, CAST(? AS SIGNED) AS place, CAST(? AS SIGNED) AS outcome, \
         CAST(? AS CHAR) AS bounce",
        " UNION ALL ",
        ") AS v STRAIGHT_JOIN recipient r FORCE INDEX (PRIMARY) ON r.uid = v.uid AND r.position = v.place \
         SET r.outcome = v.outcome, r.bounce = v.bounce",
    ),
};

static TOLD: MultiRow = MultiRow::new("SELECT uid, kind, data FROM event WHERE uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![SHOWN.sample().into(), SHOW.sample(), TOLD.sample().into()]
}

/// Findings, and what they come from.
pub(crate) struct FindingSource<'r> {
    /// The mail or the event.
    uid: MessageUid,
    origin: FindingOrigin,
    at: Time,
    findings: &'r [MessageFinding],
}

impl<'r> FindingSource<'r> {
    /// The findings of an inbound mail.
    pub fn of_mail(uid: MessageUid, at: Time, findings: &'r [MessageFinding]) -> Self {
        Self { uid, origin: FindingOrigin::Mail, at, findings }
    }

    /// The findings of an event that a provider reported.
    pub fn of_provider(uid: MessageUid, at: Time, findings: &'r [MessageFinding]) -> Self {
        Self { uid, origin: FindingOrigin::ProviderEvent, at, findings }
    }
}

/// A recipient of a message, by its position.
type RecipientPosition = (MessageUid, u32);

/// The combined effect of all findings of a call.
#[derive(Default)]
struct FindingEffects<'r> {
    outcomes: BTreeMap<RecipientPosition, Vec<(EventKind, Option<&'r str>)>>,
    suppressions: Vec<SuppressionRecord>,
    receipts: Vec<(MessageUid, MessageUid, &'r NewReceipt)>,
    answered: BTreeSet<MessageUid>,
}

/// Whether an event of this kind ends the wait for a first receipt.
pub(crate) fn ends_waiting(kind: EventKind) -> bool {
    matches!(kind, EventKind::PecAccepted | EventKind::PecFailed | EventKind::PecDelivered)
}

/// Writes the findings of these sources. Those in `again` were processed before, so their earlier events are
/// known and not written twice.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    routed: &[FindingSource<'_>],
    again: &HashSet<MessageUid>,
) -> Result<(), StoreError> {
    let findings = || routed.iter().flat_map(|one| one.findings);
    if findings().next().is_none() {
        return Ok(());
    }
    let mut histories = MessageHistories::lock(session, findings().map(|finding| finding.message)).await?;
    let with_receipt = findings().filter(|finding| finding.receipt.is_some());
    let mut known = receipts::known(session, with_receipt.map(|finding| finding.message)).await?;
    let repeated = routed.iter().filter(|one| again.contains(&one.uid)).flat_map(|one| one.findings);
    let history = history(session, repeated.map(|finding| finding.message)).await?;
    let mut effects = FindingEffects::default();
    for one in routed {
        // One receipt may be about several recipients.
        let mut of_mail = HashMap::new();
        for finding in one.findings {
            let uid = finding.message;
            let mut before = history.get(&uid).into_iter().flatten();
            if before.any(|(kind, data)| finding.is_recorded(one.origin, one.uid, *kind, data.as_deref())) {
                continue;
            }
            if let Some(receipt) = &finding.receipt {
                let place = (uid, receipt.digest);
                if known.get(&place).is_some_and(|kept| !receipt.improves_on(kept)) {
                    continue;
                }
                if histories.has(uid) && of_mail.insert(place, receipt.signature.to_owned()).is_none() {
                    if known.contains_key(&place) {
                        // No statement can write a row twice, and the receipt may have come with another mail
                        // of this call.
                        effects.receipts.retain(|(uid, _, earlier)| (*uid, earlier.digest) != place);
                    }
                    effects.receipts.push((uid, one.uid, receipt));
                }
            }
            effects.suppressions.extend(finding.suppress.clone());
            if !histories.has(uid) {
                continue;
            }
            histories.add(journal, uid, one.at, finding.kind, Some(finding.said_by(one.origin, one.uid)));
            if let Some(position) = finding.position {
                let of_recipient = effects.outcomes.entry((uid, position)).or_default();
                of_recipient.push((finding.kind, finding.bounce.as_deref()));
            }
            if ends_waiting(finding.kind) {
                effects.answered.insert(uid);
            }
        }
        known.extend(of_mail);
    }
    histories.write(session).await?;
    show(session, effects.outcomes).await?;
    let begun = admin::suppress_reported(session, effects.suppressions, SuppressionOrigin::Report).await?;
    suppression_changes::write(session, journal, &begun).await?;
    receipts::insert(session, &effects.receipts).await?;
    receipts::end_waiting(session, effects.answered.into_iter().collect()).await
}

/// The existing events of these messages that findings could repeat.
async fn history(
    session: &mut dyn SqlSession,
    uids: impl Iterator<Item = MessageUid>,
) -> Result<HashMap<MessageUid, Vec<(EventKind, Option<String>)>>, StoreError> {
    let uids: Vec<MessageUid> = uids.collect::<BTreeSet<_>>().into_iter().collect();
    let mut history: HashMap<_, Vec<_>> = HashMap::new();
    for (sql, run) in TOLD.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let event = (coded(row.int(1)?, EventKind::from_code)?, row.opt_string(2)?);
            history.entry(MessageUid::from_bytes(row.id16(0)?)).or_default().push(event);
        }
    }
    Ok(history)
}

/// Stores the worst reported outcome of each recipient; among equally bad ones, the latest.
async fn show(
    session: &mut dyn SqlSession,
    outcomes: BTreeMap<RecipientPosition, Vec<(EventKind, Option<&str>)>>,
) -> Result<(), StoreError> {
    let places: Vec<RecipientPosition> = outcomes.keys().copied().collect();
    let mut shown = Vec::with_capacity(places.len());
    for (sql, run) in SHOWN.runs(&places) {
        let values = run.iter().flat_map(|(uid, position)| values![uid.as_bytes(), *position]).collect();
        for row in session.rows(sql.into(), values).await? {
            let place = (MessageUid::from_bytes(row.id16(0)?), row.u32(1)?);
            let before = row.opt_int(2)?.map(|code| coded(code, EventKind::from_code)).transpose()?;
            let (mut outcome, mut bounce) = (before, row.opt_string(3)?);
            let mut changes = false;
            for (kind, said) in outcomes.get(&place).into_iter().flatten() {
                if replaces_outcome(outcome, *kind) {
                    (outcome, changes) = (Some(*kind), true);
                    bounce = said.map(str::to_owned).or(bounce);
                }
            }
            if changes {
                shown.push((place, outcome, bounce));
            }
        }
    }
    for (sql, run) in SHOW.runs(&shown) {
        let row =
            |((uid, position), outcome, bounce): &(RecipientPosition, Option<EventKind>, Option<String>)| {
                values![uid.as_bytes(), *position, outcome.map(EventKind::code), bounce.as_deref()]
            };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}
