//! Erasing an address from what is kept of messages.

use postway_domain::{EventKind, MessageState, MessageStatus, RecipientStatus, message::AttemptOutcome};

use super::{
    Shared,
    retention::{DAY_MS, END_MS, fan_out, is_there, notify_as, sent, subscribe, tally, waiting},
    sample::{ACCOUNT, OTHER_TENANT, Sample, at, other_tenant, tenant},
    stage::{accept, accept_and_claim, apply, offer, outcome, record},
};
use crate::record::{
    Acceptance, ErasureCounts, NotificationCall, NotificationState, RecipientChange, SmtpReply, StoredBody,
};

/// A message to one address alone leaves only a tombstone that names nobody.
pub async fn an_erased_address_takes_its_messages_along(store: &Shared) {
    let address = "Ann@example.org";
    let to_ann = |number| Sample::new(number).to("ann@EXAMPLE.org");
    let twice = sent(store, to_ann(1).to("ANN@example.org").client_id("c")).await;
    let others = sent(store, Sample::new(2).from(OTHER_TENANT, ACCOUNT).to(address)).await;
    let unlike = sent(store, Sample::new(3).to("joann@example.org")).await;
    let accented = sent(store, Sample::new(4).to("änn@example.org")).await;
    let on_its_way = accept(store, to_ann(5).send_at(DAY_MS)).await;
    fan_out(store, at(3)).await;

    let erased = store.erase(&tenant(), address, at(10 * DAY_MS), 9).await.unwrap();
    assert_eq!(erased, ErasureCounts { removed: 1, redacted: 0, waiting: 1 });
    assert!(!is_there(store, &tenant(), twice).await);
    for (of, uid) in
        [(other_tenant(), others), (tenant(), unlike), (tenant(), accented), (tenant(), on_its_way)]
    {
        assert!(is_there(store, &of, uid).await);
    }
    assert!(store.tombstone(twice).await.unwrap().unwrap().recipients.is_empty());
    let repeat = offer(store, to_ann(6).client_id("c").created(DAY_MS)).await;
    assert_eq!(repeat, Acceptance::Repeat { uid: twice });
    assert_eq!(tally(store, &tenant()).await, [(MessageStatus::Scheduled, 1), (MessageStatus::Sent, 2)]);
    assert_eq!(store.erase(&tenant(), address, at(DAY_MS), 9).await.unwrap(), waiting(1));
}

/// What went to others as well stays theirs, without the address and what the sender wrote.
pub async fn an_erased_address_is_taken_out_of_messages_to_others(store: &Shared) {
    let to_both = Sample::new(1).to("bob@example.org").to("ann@example.org").content(|content| {
        content.metadata = Some("{\"name\":\"Ann\"}".to_owned());
        content.payload = Some(StoredBody::Inline("{}".into()));
    });
    let due = subscribe(store, "hook").await;
    let claimed = accept_and_claim(store, to_both, 1).await;
    let said = |text: &str| Some(SmtpReply { code: Some(550), enhanced: None, text: text.to_owned() });
    let mut failure = outcome(&claimed, false, AttemptOutcome::Failed, at(END_MS));
    failure.error = Some("{\"message\":\"no <Ann@example.org>\"}".to_owned());
    failure.attempt.as_mut().unwrap().reply = said("550 ann@example.org is unknown");
    failure.events[0].data = Some("{\"to\":\"ann@example.org\",\"code\":550}".to_owned());
    failure.recipients = (0..2)
        .map(|position| RecipientChange {
            position,
            status: RecipientStatus::Failed,
            reply: said("550 ANN@example.org"),
        })
        .collect();
    assert!(apply(store, failure).await);
    fan_out(store, at(3)).await;
    let call = NotificationCall {
        at: at(3),
        latency_ms: 1,
        status: Some(200),
        request: "to ann@example.org".to_owned(),
        answer: "ann@example.org is noted".to_owned(),
    };
    notify_as(store, &due, |_| Some(NotificationState::Acknowledged), Some(call), at(4)).await;
    let version = record(store, claimed.uid).await.summary.version;

    let erased = store.erase(&tenant(), "ann@example.org", at(9), 9).await.unwrap();
    assert_eq!(erased, ErasureCounts { removed: 0, redacted: 1, waiting: 0 });
    assert_eq!(store.erase(&tenant(), "ann@example.org", at(9), 9).await.unwrap(), ErasureCounts::default());
    let record = record(store, claimed.uid).await;
    assert!(!format!("{record:?}").to_lowercase().contains("ann@"), "{record:#?}");
    let addresses: Vec<_> = record.recipients.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(addresses, ["bob@example.org", "erased@erased.invalid"]);
    assert_eq!(record.recipients[0].reply.as_ref().unwrap().text, "550 erased@erased.invalid");
    assert_eq!(record.attempts[0].reply.as_ref().unwrap().text, "550 erased@erased.invalid is unknown");
    let failed = record.events.iter().find(|event| event.kind == EventKind::Failed).unwrap();
    assert_eq!(failed.data.as_deref(), Some("{\"to\":\"erased@erased.invalid\",\"code\":550}"));
    let told = store.notifications(&tenant(), claimed.uid).await.unwrap();
    let call = told[0].last_call.as_ref().unwrap();
    assert_eq!((call.status, call.request.as_str(), call.answer.as_str()), (Some(200), "", ""));
    let summary = &record.summary;
    assert_eq!((summary.subject.as_str(), &summary.metadata), ("", &None));
    assert_eq!((summary.state, summary.updated_at), (MessageState::Failed, at(END_MS)));
    assert!(summary.version > version, "who read it before must read again");
    assert_eq!(store.raw(&tenant(), claimed.uid).await.unwrap(), None);
    assert_eq!(store.payload(&tenant(), claimed.uid).await.unwrap(), None);
    assert_eq!(tally(store, &tenant()).await, [(MessageStatus::Failed, 1)]);
    assert_eq!(store.erase(&tenant(), "bob@example.org", at(9), 9).await.unwrap().redacted, 1);
}

/// The number of messages that one call erases.
pub async fn an_erasure_goes_slice_by_slice(store: &Shared) {
    for number in 1..=3 {
        sent(store, Sample::new(number).to("ann@example.org")).await;
    }
    fan_out(store, at(3)).await;
    for removed in [2, 1, 0] {
        let erased = store.erase(&tenant(), "ann@example.org", at(9), 2).await.unwrap();
        assert_eq!(erased, ErasureCounts { removed, ..ErasureCounts::default() });
    }
}
