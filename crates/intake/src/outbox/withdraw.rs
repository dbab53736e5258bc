//! Withdraws the mails of tokens that have ended. A mail that is being sent or was sent cannot be withdrawn.

use postway_domain::{
    ClientId, MessageState, MessageStatus, TenantId, Time,
    message::{OtherRecipients, TransitionInput},
};
use postway_store::{
    Store, StoreError,
    record::{MessageChange, MessageKey, WriteFence},
};

use crate::accept::store::state_metrics::count_entered;

/// Cancels the message with this id, if it can be cancelled. Returns `false` if it must be tried again: the
/// message is being sent, and may come back unsent.
pub(super) async fn withdraw(
    store: &dyn Store,
    tenant: &TenantId,
    id: &ClientId,
    now: Time,
) -> Result<bool, StoreError> {
    let Some(record) = store.message(tenant, &MessageKey::Client(id.clone())).await? else {
        return Ok(true);
    };
    let summary = record.summary;
    let fence = WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) };
    // Recipients already sent to stay sent; only pending ones are cancelled.
    let cancel =
        TransitionInput::Cancel(OtherRecipients::beside_open(record.recipients.iter().map(|one| one.status)));
    let Ok(mut change) = MessageChange::step(summary.uid, fence, summary.state, cancel, now) else {
        return Ok(summary.state.status() != MessageStatus::Sending);
    };
    let to = change.to;
    if to == MessageState::Cancelled {
        change.error = summary.error;
    }
    change.erases_bodies = to == MessageState::Sent && summary.sensitive;
    let change = change.telling(&serde_json::json!({"reason": "its token has ended"}));
    if store.apply(vec![change]).await?.first() == Some(&true) {
        count_entered(to.status(), 1);
        return Ok(true);
    }
    // The message changed meanwhile.
    Ok(false)
}
