//! Calling mails back whose tokens have ended. What is on the wire or sent is past that.

use postway_domain::{
    ClientId, Status, TenantId, Time,
    message::{Input, transition},
};
use postway_store::{
    Store, StoreError,
    record::{Change, Fence, MessageKey, NewEvent},
};

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
    let Ok((to, effects)) = transition(summary.state, Input::Cancel) else {
        return Ok(summary.state.status() != Status::Sending);
    };
    let data = serde_json::json!({"reason": "its token has ended"}).to_string();
    let change = Change {
        uid: summary.uid,
        fence: Fence { status: summary.state.status(), token: None, version: Some(summary.version) },
        to,
        at: now,
        due_at: None,
        keep_token: false,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: summary.error,
        events: effects.event.map(|kind| NewEvent { kind, data: Some(data) }).into_iter().collect(),
        recipients: Vec::new(),
        ends_open_recipients: effects.ends_open_recipients,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    };
    if store.apply(vec![change]).await?.first() == Some(&true) {
        let state = to.status().as_str();
        metrics::counter!("postway_state_transitions_total", "state" => state).increment(1);
        metrics::counter!("postway_final_states_total", "state" => state).increment(1);
        return Ok(true);
    }
    // Somebody else moved it meanwhile.
    Ok(false)
}
