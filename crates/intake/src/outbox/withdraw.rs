//! Calling mails back whose tokens have ended. What is on the wire or sent is past that.

use postway_domain::{
    ClientId, State, Status, TenantId, Time,
    message::{Input, Rest},
};
use postway_store::{
    Store, StoreError,
    record::{Change, Fence, MessageKey},
};

use crate::accept::store::state_metrics::count_entered;

/// Cancels the message of this id, if there is one that can be. `false` where it must be looked at again: it is on the
/// wire, and may come back from it unsent.
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
    let fence = Fence { status: summary.state.status(), token: None, version: Some(summary.version) };
    // Who has got it already has got it: only the others are spared.
    let cancel = Input::Cancel(Rest::beside_open(record.recipients.iter().map(|one| one.status)));
    let Ok(mut change) = Change::step(summary.uid, fence, summary.state, cancel, now) else {
        return Ok(summary.state.status() != Status::Sending);
    };
    let to = change.to;
    if to == State::Cancelled {
        change.error = summary.error;
    }
    change.erases_bodies = to == State::Sent && summary.sensitive;
    let change = change.telling(&serde_json::json!({"reason": "its token has ended"}));
    if store.apply(vec![change]).await?.first() == Some(&true) {
        count_entered(to.status(), 1);
        return Ok(true);
    }
    // Somebody else moved it meanwhile.
    Ok(false)
}
