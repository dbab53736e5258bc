//! Writing the results of processing inbound mail.
//!
//! The rows are locked and their tokens compared, then everything is written set-wise: the mail, its
//! findings, the messages sent because of it, and the event for subscribers. A late worker writes nothing.

use std::collections::HashMap;

use postway_domain::{EventKind, InboundState, MessageState, MessageUid, TenantId, Time, id::RuleId};

use super::{
    claim::ids,
    domain_reports,
    findings::{self, FindingSource},
};
use crate::{
    error::StoreError,
    journal::{self, AppendedEvent, EventJournal},
    record::{InboundMailResult, NewEvent},
    sql::{
        SqlSession,
        decode::tags,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

const LEASED: &str = "SELECT uid, tenant, lease_token, event_seq, tags, resolved_at, kind FROM inbound WHERE state = 1 AND uid IN (";
static LOCK: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(LEASED, 1, ")"),
    postgres: MultiRow::new(LEASED, 1, ") ORDER BY uid FOR UPDATE"),
    mysql: MultiRow::new(LEASED, 1, ") ORDER BY uid FOR UPDATE"),
};

/// The rows exist and are locked, so nothing is ever inserted. This form is the one in which all databases
/// can give each row its own values.
macro_rules! settle {
    ($end:literal) => {
        MultiRow::of_pieces(
            "INSERT INTO inbound (uid, state, due_at, tries, error, kind, result, tags, follow_up, reminders, event_seq, \
             updated_at, settled_at, lost_leases, attempts, tenant, mailbox, folder, uid_validity, imap_uid, size, created_at) VALUES ",
            "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'','','',0,0,0,0)",
            ",",
            $end,
        )
    };
}
macro_rules! settle_on_conflict {
    () => {
        settle!(
            " ON CONFLICT (uid) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, tries = excluded.tries, \
             error = excluded.error, kind = COALESCE(excluded.kind, inbound.kind), \
             result = COALESCE(excluded.result, inbound.result), tags = excluded.tags, follow_up = excluded.follow_up, \
             reminders = excluded.reminders, event_seq = excluded.event_seq, updated_at = excluded.updated_at, \
             settled_at = excluded.settled_at, lost_leases = excluded.lost_leases, \
             attempts = inbound.attempts + excluded.attempts, lease_node = NULL, lease_token = NULL, lease_until = NULL"
        )
    };
}
static SETTLE: MultiRowSql = MultiRowSql {
    sqlite: settle_on_conflict!(),
    postgres: settle_on_conflict!(),
    mysql: settle!(
        " ON DUPLICATE KEY UPDATE state = VALUES(state), due_at = VALUES(due_at), tries = VALUES(tries), \
         error = VALUES(error), kind = COALESCE(VALUES(kind), kind), result = COALESCE(VALUES(result), result), \
         tags = VALUES(tags), follow_up = VALUES(follow_up), reminders = VALUES(reminders), \
         event_seq = VALUES(event_seq), updated_at = VALUES(updated_at), settled_at = VALUES(settled_at), \
         lost_leases = VALUES(lost_leases), attempts = attempts + VALUES(attempts), lease_node = NULL, lease_token = NULL, lease_until = NULL"
    ),
};
static SENT: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(
        "INSERT INTO inbound_message (uid, rule, message) VALUES ",
        3,
        " ON CONFLICT DO NOTHING",
    ),
    postgres: MultiRow::new(
        "INSERT INTO inbound_message (uid, rule, message) VALUES ",
        3,
        " ON CONFLICT DO NOTHING",
    ),
    mysql: MultiRow::new(
        "INSERT INTO inbound_message (uid, rule, message) VALUES ",
        3,
        " ON DUPLICATE KEY UPDATE uid = inbound_message.uid",
    ),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![LOCK.sample(), SETTLE.sample(), SENT.sample()]
}

/// The next state of a mail, the same for every store.
pub(crate) struct NextMailState {
    pub state: InboundState,
    pub due_at: Option<Time>,
    pub follow_up: Option<RuleId>,
    pub settled_at: Option<Time>,
}

impl NextMailState {
    /// No mail stays in processing without a lease, and a resolved mail gets no reminder.
    pub fn after(routed: &InboundMailResult, is_resolved: bool) -> Self {
        let state = match routed.to {
            InboundState::Routing => InboundState::Waiting,
            state => state,
        };
        let due_at = match state {
            InboundState::Routed => routed.due_at.filter(|_| !is_resolved),
            state if state.is_settled() => None,
            _ => Some(routed.due_at.unwrap_or(routed.at)),
        };
        let follow_up = routed.follow_up.clone().filter(|_| !is_resolved);
        Self { state, due_at, follow_up, settled_at: state.is_settled().then_some(routed.at) }
    }
}

/// A leased mail.
struct LeasedMail {
    tenant: TenantId,
    token: Option<i64>,
    event_seq: i64,
    tags: Vec<String>,
    is_resolved: bool,
    /// Whether it was processed before, so that its findings may be recorded already.
    is_again: bool,
}

/// Writes the results; `true` for each that was applied, and whether something is due again.
pub(crate) async fn settle(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    routed: &[InboundMailResult],
) -> Result<(Vec<bool>, bool), StoreError> {
    let mut leased = lock(session, routed).await?;
    let mut held = vec![false; routed.len()];
    let mut done: Vec<(&InboundMailResult, LeasedMail)> = Vec::with_capacity(routed.len());
    for (index, one) in routed.iter().enumerate() {
        let is_ours = |row: &&LeasedMail| row.token == Some(one.token.as_i64());
        if leased.get(&one.uid).filter(is_ours).is_some() {
            held[index] = true;
            done.extend(leased.remove(&one.uid).map(|row| (one, row)));
        }
    }
    let of_ours: Vec<&InboundMailResult> = done.iter().map(|(one, _)| *one).collect();
    let again = done.iter().filter(|(_, row)| row.is_again).map(|(one, _)| one.uid).collect();
    let sources: Vec<FindingSource<'_>> =
        of_ours.iter().map(|one| FindingSource::of_mail(one.uid, one.at, &one.findings)).collect();
    findings::write(session, journal, &sources, &again).await?;
    let reports: Vec<_> = of_ours.iter().flat_map(|one| &one.domain_reports).collect();
    domain_reports::write(session, &reports).await?;
    tell(session, journal, &mut done).await?;
    let is_due_again = write(session, &mut done).await?;
    let sent: Vec<_> = of_ours
        .iter()
        .flat_map(|one| one.messages.iter().map(|(rule, message)| (one.uid, rule, *message)))
        .collect();
    for (sql, run) in SENT.runs(&sent) {
        let row = |(uid, rule, message): &(MessageUid, &RuleId, MessageUid)| {
            values![uid.as_bytes(), rule.as_str(), message.as_bytes()]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok((held, is_due_again))
}

async fn lock(
    session: &mut dyn SqlSession,
    routed: &[InboundMailResult],
) -> Result<HashMap<MessageUid, LeasedMail>, StoreError> {
    let mut uids: Vec<MessageUid> = routed.iter().map(|one| one.uid).collect();
    uids.sort();
    uids.dedup();
    let mut leased = HashMap::with_capacity(uids.len());
    for (sql, run) in LOCK.runs(&uids) {
        for row in session.rows(sql, ids(run)).await? {
            let one = LeasedMail {
                tenant: row.parsed(1)?,
                token: row.opt_int(2)?,
                event_seq: row.int(3)?,
                tags: tags(row.opt_text(4)?)?,
                is_resolved: row.opt_int(5)?.is_some(),
                is_again: row.opt_text(6)?.is_some(),
            };
            leased.insert(MessageUid::from_bytes(row.id16(0)?), one);
        }
    }
    Ok(leased)
}

/// Adds the `received` event. It belongs to the mail's own id and to no lane: no account is counted for it.
async fn tell(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    done: &mut [(&InboundMailResult, LeasedMail)],
) -> Result<(), StoreError> {
    let mut events = Vec::new();
    for (one, row) in done {
        let Some(data) = &one.received else { continue };
        row.event_seq += 1;
        let (uid, seq, at, kind) = (one.uid, row.event_seq, one.at, EventKind::Received);
        journal.note(
            &row.tenant,
            journal::suppression_changes::no_lane(),
            AppendedEvent { uid, seq, at, kind, to: MessageState::Sent },
        );
        events.push((uid, seq, at, NewEvent { kind, data: Some(data.clone()) }));
    }
    journal::history::insert_events(session, &events).await
}

async fn write(
    session: &mut dyn SqlSession,
    done: &mut [(&InboundMailResult, LeasedMail)],
) -> Result<bool, StoreError> {
    let mut is_due_again = false;
    // In the order of ids, as they were locked.
    done.sort_by_key(|(one, _)| one.uid);
    for (sql, run) in SETTLE.runs(done) {
        let mut values = Vec::with_capacity(15 * run.len());
        for (one, row) in run {
            let next = NextMailState::after(one, row.is_resolved);
            is_due_again |= next.due_at.is_some_and(|due_at| due_at <= one.at);
            let mut labels = row.tags.clone();
            add_tags(&mut labels, &one.tags);
            values.extend(values![
                one.uid.as_bytes(),
                next.state.code(),
                next.due_at,
                one.tries,
                one.error.as_deref(),
                one.kind,
                one.result.as_deref(),
                (!labels.is_empty()).then(|| serde_json::json!(labels).to_string()),
                next.follow_up.as_ref().map(|rule| rule.as_str()),
                one.reminders,
                row.event_seq,
                one.at,
                next.settled_at,
                one.lost_leases,
                i64::from(one.was_tried),
            ]);
        }
        session.execute(sql, values).await?;
    }
    Ok(is_due_again)
}

/// Adds the labels that are missing.
pub(crate) fn add_tags(labels: &mut Vec<String>, new: &[String]) {
    for tag in new {
        if !labels.contains(tag) {
            labels.push(tag.clone());
        }
    }
}

// The statements above write this code as a literal.
const _: () = assert!(InboundState::Routing as i64 == 1);
