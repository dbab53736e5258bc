//! Decisions of readers about the streams of their mail.
//!
//! The suppression and the message's event are one transaction. A decision that was made before adds no
//! event: mail programs and impatient people send it twice.

use postway_domain::EventKind;

use super::append_events::MessageHistories;
use crate::{
    admin,
    error::StoreError,
    journal::{EventJournal, suppression_changes},
    record::{ChangeResult, ReaderDecision, SuppressionListChange, SuppressionOrigin, SuppressionReason},
    sql::SqlSession,
};

/// Writes a decision, and the event of its message if that still exists.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    decision: &ReaderDecision,
) -> Result<ChangeResult, StoreError> {
    // Locks the message first and the list after it, in the order of settling inbound mail.
    let mut histories = MessageHistories::lock(session, std::iter::once(decision.message)).await?;
    let (is_changed, kind) = match decision.leaves {
        true => {
            let is_new = admin::add_scoped(session, &decision.suppression()).await?;
            (is_new, EventKind::Unsubscribed)
        }
        false => {
            let reason = SuppressionReason::Unsubscribe;
            let is_removed = admin::remove_scoped(session, &decision.scope(), reason).await?;
            (is_removed, EventKind::Resubscribed)
        }
    };
    if !is_changed {
        return Ok(ChangeResult::Already);
    }
    if histories.is_of(decision.message, &decision.tenant) {
        histories.add(journal, decision.message, decision.at, kind, Some(decision.data()));
        histories.write(session).await?;
    }
    let suppression = decision.suppression();
    let change = match decision.leaves {
        true => SuppressionListChange::begin_scoped(&suppression, SuppressionOrigin::Reader),
        false => SuppressionListChange::end_scoped(&suppression, SuppressionOrigin::Reader, decision.at),
    };
    suppression_changes::write(session, journal, change.as_slice()).await?;
    Ok(ChangeResult::Done)
}
