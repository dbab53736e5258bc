//! What an event changes: reports become findings as reports by mail do, and what readers do becomes events.

use postway_domain::{EmailAddress, EventKind, MailStream, MessageUid, Time};
use postway_store::{
    Store, StoreError,
    record::{
        MessageFinding, MessageKey, ReaderDecision, SuppressionReason, SuppressionRecord, TracedMessage,
    },
};
use serde_json::{Value, json};

use super::reading::{EventContent, ReaderAct, ReportedEvent};
use crate::correlate::{ReportProof, findings, findings::position_of};

/// What an event changes.
pub(super) struct AppliedEvent {
    /// What happened.
    pub kind: EventKind,
    pub findings: Vec<MessageFinding>,
    /// That a reader left the message's stream.
    pub decision: Option<ReaderDecision>,
}

/// Turns an event about this message into changes.
pub(super) async fn apply(
    store: &dyn Store,
    reported: &ReportedEvent,
    traced: &TracedMessage,
    now: Time,
) -> Result<AppliedEvent, StoreError> {
    match &reported.content {
        EventContent::Report(report) => {
            let mut found = findings(report, traced, ReportProof::Provider, now);
            for finding in &mut found {
                finding.data = finding.data.take().map(|data| with_time(&data, reported.at));
            }
            let kind = found.first().map_or(EventKind::Delivered, |finding| finding.kind);
            Ok(AppliedEvent { kind, findings: found, decision: None })
        }
        EventContent::Act(act) if act.kind == EventKind::Unsubscribed => {
            unsubscribe(store, act, reported, traced, now).await
        }
        EventContent::Act(act) => {
            let finding = act_finding(act, reported, traced);
            Ok(AppliedEvent { kind: act.kind, findings: vec![finding], decision: None })
        }
        EventContent::Nothing(_) => {
            Ok(AppliedEvent { kind: EventKind::Delivered, findings: Vec::new(), decision: None })
        }
    }
}

/// The event of what a reader did.
fn act_finding(act: &ReaderAct, reported: &ReportedEvent, traced: &TracedMessage) -> MessageFinding {
    let mut data = json!({"recipient": act.recipient, "proof": ReportProof::Provider.as_str()});
    for (name, value) in [("url", &act.url), ("user_agent", &act.user_agent)] {
        if let Some(value) = value {
            data[name] = Value::from(value.as_str());
        }
    }
    MessageFinding {
        message: traced.uid,
        position: act.recipient.as_deref().and_then(|address| position_of(address, traced)),
        kind: act.kind,
        data: Some(with_time(&data.to_string(), reported.at)),
        bounce: None,
        suppress: None,
        receipt: None,
    }
}

/// The event data with the provider's own time.
fn with_time(data: &str, at: Option<Time>) -> String {
    let (Some(at), Ok(Value::Object(mut fields))) = (at, serde_json::from_str(data)) else {
        return data.to_owned();
    };
    fields.insert("at".to_owned(), json!(at));
    Value::Object(fields).to_string()
}

/// A reader who unsubscribes at the provider leaves the message's stream, as by our own link. A message
/// without a stream has no narrower name for what the reader left, so the address gets no more mail of the
/// tenant; the provider would not send it either.
async fn unsubscribe(
    store: &dyn Store,
    act: &ReaderAct,
    reported: &ReportedEvent,
    traced: &TracedMessage,
    now: Time,
) -> Result<AppliedEvent, StoreError> {
    let kind = EventKind::Unsubscribed;
    let recipient = act.recipient.as_deref().filter(|address| position_of(address, traced).is_some());
    let Some(address) = recipient.map(EmailAddress::key_of) else {
        let findings = vec![act_finding(act, reported, traced)];
        return Ok(AppliedEvent { kind, findings, decision: None });
    };
    if let Some(stream) = stream_of(store, traced, traced.uid).await? {
        let decision = ReaderDecision {
            tenant: traced.tenant.clone(),
            message: traced.uid,
            stream,
            address,
            leaves: true,
            via: "provider",
            at: now,
        };
        return Ok(AppliedEvent { kind, findings: Vec::new(), decision: Some(decision) });
    }
    let suppress = SuppressionRecord {
        tenant: traced.tenant.clone(),
        address,
        reason: SuppressionReason::Unsubscribe,
        note: Some(format!("message {}: unsubscribed at the provider", traced.uid)),
        created_at: now,
        expires_at: None,
    };
    let finding = MessageFinding { suppress: Some(suppress), ..act_finding(act, reported, traced) };
    Ok(AppliedEvent { kind, findings: vec![finding], decision: None })
}

/// The stream of a message, if it has one.
async fn stream_of(
    store: &dyn Store,
    traced: &TracedMessage,
    uid: MessageUid,
) -> Result<Option<postway_domain::id::StreamId>, StoreError> {
    let found = store.message(&traced.tenant, &MessageKey::Uid(uid)).await?;
    let Some(id) = found.and_then(|found| MailStream::of_batch(found.summary.lane.batch.as_ref()?)) else {
        return Ok(None);
    };
    Ok(store.stream(&traced.tenant, &id).await?.map(|stream| stream.id))
}
