//! A slice of a bulk action: its messages and how far it is, in one transaction. So a message that was
//! changed is never met again, whenever the process dies.

use postway_domain::MessageUid;

use super::{preparation, transaction::WriteTransaction};
use crate::{
    admin::{self, BulkProgress, bulk_actions},
    error::StoreError,
    journal::suppression_changes,
    record::{BulkStep, MessageChange, SuppressionOrigin},
};

/// Does a slice inside the transaction under way, and says which of its changes were applied; `None` if the
/// action is not in the version that the slice was made for.
pub(crate) async fn advance(
    engine: &mut impl WriteTransaction,
    step: &BulkStep,
) -> Result<Option<Vec<bool>>, StoreError> {
    engine.after().wrote = true;
    let BulkStep { tenant, id, version, at, .. } = step;
    if !bulk_actions::take(&mut *engine.session()?, tenant, *id, *version, *at).await? {
        return Ok(None);
    }
    let changes: Vec<&MessageChange> = step.changes.iter().collect();
    let applied = engine.apply(&changes).await?;
    let of = |held: bool| changes.iter().zip(&applied).filter(move |(_, one)| **one == held);
    let written: Vec<&MessageChange> = of(true).map(|(change, _)| *change).collect();
    let missed: Vec<MessageUid> = of(false).map(|(change, _)| change.uid).collect();
    preparation::settle(engine, &written).await?;
    let mut journal = std::mem::take(&mut engine.after().journal);
    let mut session = engine.session()?;
    let begun =
        admin::suppress_reported(&mut *session, step.suppressed.clone(), SuppressionOrigin::Operator).await?;
    suppression_changes::write(&mut *session, &mut journal, &begun).await?;
    let (again, left) = if step.tries_again { (missed, 0) } else { (Vec::new(), missed.len() as i64) };
    let is_finished = step.ends.is_some() && again.is_empty();
    let progress = BulkProgress {
        reached: step.reached,
        again: &again,
        changed: step.done + written.len() as i64,
        skipped: step.skipped + left,
        is_finished,
        at: *at,
    };
    bulk_actions::advance(&mut *session, tenant, *id, &progress).await?;
    if let Some(entry) = step.ends.as_ref().filter(|_| is_finished) {
        admin::record_audit(&mut *session, entry).await?;
    }
    drop(session);
    engine.after().journal = journal;
    Ok(Some(applied))
}
