//! Taking messages in.

use postway_domain::{
    EventKind, MessagePriority, MessageState, RecipientKind, RecipientStatus, message::OnDoubt,
    message::ScheduleReason,
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, event},
    stage::{accept, all_at_once, assert_gapless, direct, offer, record, woken},
    suppress::suppression,
};
use crate::record::{Acceptance, DirectoryChange, NewEvent, NewMessage};

/// Nothing of a message is lost or altered on its way through.
pub async fn an_accepted_message_reads_back_whole(store: &Shared) {
    let before = store.commits();
    let sample = Sample::new(1)
        .priority(MessagePriority::High)
        .batch("spring")
        .client_id("order-1")
        .to("Ada@example.org")
        .to("bob@example.org")
        .to("carol@example.org")
        .expires(60_000)
        .hold_in_doubt()
        .content(|content| {
            content.subject = "Grüße, 世界".to_owned();
            content.request_id = Some("req-1".to_owned());
            content.external_id = Some("ext-1".to_owned());
            content.tags = vec!["b".to_owned(), "a".to_owned()];
            content.metadata = Some(r#"{"k":"v"}"#.to_owned());
            content.eight_bit = true;
            content.smtputf8 = true;
            content.raw = bytes::Bytes::from_static(b"\x00\xff raw \r\n bytes").into();
        });
    let message = sample.clone().build();
    let uid = accept(store, sample).await;
    assert!(store.commits() > before, "what is stored was committed");

    let found = record(store, uid).await;
    let summary = &found.summary;
    assert_eq!(summary.uid, uid);
    assert_eq!(summary.client_id, message.client_id);
    assert_eq!(summary.lane, message.lane);
    assert_eq!(summary.state, MessageState::Ready);
    assert_eq!((summary.version, summary.attempt, summary.retries, summary.doubts), (1, 0, 0, 0));
    assert_eq!(summary.on_doubt, OnDoubt::Hold);
    assert_eq!((summary.created_at, summary.updated_at), (at(0), at(0)));
    assert_eq!((summary.due_at, summary.expires_at), (Some(at(0)), Some(at(60_000))));
    assert_eq!((summary.sent_at, summary.failed_at), (None, None));
    assert_eq!((summary.exhausted, &summary.error), (false, &None));
    assert_eq!(summary.subject, message.content.subject);
    assert_eq!(summary.message_id, message.content.message_id);
    assert_eq!(summary.request_id, message.content.request_id);
    assert_eq!(summary.external_id, message.content.external_id);
    assert_eq!(summary.tags, message.content.tags);
    assert_eq!(summary.metadata, message.content.metadata);
    assert_eq!(summary.provider_message_id, None);

    let recipients: Vec<_> = found.recipients.iter().map(|one| (one.address.as_str(), one.kind)).collect();
    let expected = [
        ("Ada@example.org", RecipientKind::To),
        ("bob@example.org", RecipientKind::Cc),
        ("carol@example.org", RecipientKind::Bcc),
    ];
    assert_eq!(recipients, expected);
    assert!(found.recipients.iter().all(|one| one.status == RecipientStatus::Pending && one.reply.is_none()));
    assert!(found.attempts.is_empty());
    let events: Vec<_> = found.events.iter().map(|event| (event.kind, event.at)).collect();
    assert_eq!(events, [(EventKind::Accepted, at(0)), (EventKind::Ready, at(0))]);
    assert_gapless(&found);
    assert_eq!(store.raw(&sample::tenant(), uid).await.unwrap(), Some(message.content.raw.clone()));
    assert_eq!(store.body(uid).await.unwrap(), Some(message.content.raw));
}

/// One answer per message, in order, new and refused mixed.
pub async fn answers_come_in_the_order_of_the_messages(store: &Shared) {
    let first = accept(store, Sample::new(1).key("k")).await;
    let call = [Sample::new(2), Sample::new(3).key("k"), Sample::new(4).key("k").body(9), Sample::new(5)];
    let answers = store.accept(call.into_iter().map(Sample::build).collect()).await.unwrap();
    assert_eq!(
        answers,
        [
            Acceptance::Accepted { handed_over: false },
            Acceptance::Repeat { uid: first },
            Acceptance::Conflict { kind: crate::record::DedupKind::Request },
            Acceptance::Accepted { handed_over: false },
        ]
    );
}

/// It has its reason and its history from the start; no recipient was sent to, suppressed or not.
pub async fn a_refused_message_starts_at_its_end(store: &Shared) {
    let list = vec![suppression(sample::TENANT, "ada@example.org")];
    direct(store, DirectoryChange::Suppress(list)).await;
    let mut message = Sample::new(1).to("ada@example.org").state(MessageState::Invalid, None).build();
    message.error = Some(r#"{"code":"INVALID_EMAIL"}"#.to_owned());
    message.events = vec![sample::event(EventKind::Accepted), sample::event(EventKind::Invalid)];
    let nobody = Sample::new(2).state(MessageState::Invalid, None).build();
    let (uid, empty) = (message.uid, NewMessage { recipients: Vec::new(), ..nobody });
    let answers = store.accept(vec![message, empty]).await.unwrap();
    assert_eq!(answers, vec![Acceptance::Accepted { handed_over: false }; 2]);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Invalid, None));
    assert_eq!(found.summary.error.as_deref(), Some(r#"{"code":"INVALID_EMAIL"}"#));
    assert_eq!(found.recipients[0].status, RecipientStatus::Failed);
    let kinds: Vec<_> = found.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Invalid]);
    assert_gapless(&found);
}

/// A message that waits for something is stored as waiting for it.
pub async fn a_message_keeps_the_state_it_comes_with(store: &Shared) {
    let scheduled = accept(store, Sample::new(1).send_at(5_000)).await;
    let accepted = accept(store, Sample::new(2).state(MessageState::Accepted, None)).await;
    let found = record(store, scheduled).await;
    assert_eq!(found.summary.state, MessageState::Scheduled(ScheduleReason::SendAt));
    assert_eq!(found.summary.due_at, Some(at(5_000)));
    let found = record(store, accepted).await;
    assert_eq!(
        (found.summary.state, found.summary.due_at),
        (MessageState::Accepted, Some(at(0))),
        "to be prepared"
    );
}

/// The dispatcher is woken for the account, for later work too, so that it can set its timer.
pub async fn due_work_wakes_its_account(store: &Shared) {
    accept(store, Sample::new(1)).await;
    accept(store, Sample::new(2).from(OTHER_TENANT, ACCOUNT)).await;
    accept(store, Sample::new(3).from(TENANT, OTHER_ACCOUNT).send_at(9_000)).await;
    let expected = [
        sample::key(TENANT, OTHER_ACCOUNT),
        sample::key(TENANT, ACCOUNT),
        sample::key(OTHER_TENANT, ACCOUNT),
    ];
    assert_eq!(woken(store, 3).await, expected);
}

/// Callers that share a transaction do not share their answers.
pub async fn each_of_many_callers_is_answered_for_its_own_messages(store: &Shared) {
    let calls = (0..100u32).map(|caller| {
        let store = store.clone();
        async move {
            let data = Some(format!("{{\"caller\":{caller}}}"));
            let mut call: Vec<_> = (0..=caller % 3).map(|n| Sample::new(caller * 10 + n).build()).collect();
            for message in &mut call {
                message.events.push(NewEvent { data: data.clone(), ..event(EventKind::Validated) });
            }
            let uids: Vec<_> = call.iter().map(|message| message.uid).collect();
            (uids, data, store.accept(call).await.unwrap())
        }
    });
    for (uids, data, answers) in all_at_once(calls).await {
        assert_eq!(answers, vec![Acceptance::Accepted { handed_over: false }; uids.len()]);
        for uid in uids {
            let found = record(store, uid).await;
            assert_gapless(&found);
            assert_eq!(found.events.last().unwrap().data, data);
        }
    }
}

/// Nothing in, nothing out, nothing written.
pub async fn an_empty_call_is_no_work(store: &Shared) {
    assert_eq!(store.accept(Vec::new()).await.unwrap(), []);
    assert_eq!(store.apply(Vec::new()).await.unwrap(), [false; 0]);
    assert_eq!(store.wire_commit(Vec::new()).await.unwrap(), [false; 0]);
    assert_eq!(offer(store, Sample::new(1)).await, Acceptance::Accepted { handed_over: false });
}
