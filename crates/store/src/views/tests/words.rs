//! Every state and every event has its word.

use postway_domain::{
    EventKind, InboundState, MessageUid, State,
    message::Outcome,
    reference::{
        Forwarded, Sense, Standing, Told, event_004, history_000, status_000, status_001, status_002,
        status_004,
    },
};

use super::{Rig, on_each, states};
use crate::{
    conformance::{
        inbound::{mail, page, register, routed, settle, take},
        journal::tell,
        mailboxes::watch,
        sample::{self, Sample, TENANT, at, tenant},
        stage,
        subscribers::{subscribe, webhook},
    },
    record::{
        Body, Call, DueSubscriber, Finding, NewInbound, NotificationState, Notified, ReportRequest, Routed,
        SuspensionScope,
    },
};

on_each! {
    every_state_has_its_word_in_every_view
    every_event_is_told_or_left_out
    what_an_event_led_to_is_told
    a_suspended_message_is_suspended
    who_was_told_is_told
    a_bounce_is_told
    every_state_of_incoming_mail_has_its_word
    mail_is_forwarded_once_its_message_is_sent
    bodies_are_shown_unless_they_are_sensitive
}

/// The name by which a state stands in the guide.
fn name(state: State) -> String {
    match state.wait() {
        Some(wait) => format!("`{}` (`{}`)", state.status().as_str(), wait.as_str()),
        None => format!("`{}`", state.status().as_str()),
    }
}

#[test]
fn the_guide_says_the_same() {
    let guide = include_str!("../../../../../docs/guide/moving/views.md");
    for state in states() {
        let words = [status_000(state, Told::No), status_001(state, Standing::Plain), status_004(state)];
        let line = format!("| {} | {} |\n", name(state), words.join(" | "));
        assert!(guide.contains(&line), "{line}");
    }
    for state in InboundState::ALL {
        let line = format!("| `{}` | {} |\n", state.as_str(), status_002(state, Forwarded::Nothing));
        assert!(guide.contains(&line), "{line}");
    }
}

/// As it is, whether the client gave it an id or not.
async fn every_state_has_its_word_in_every_view(rig: Rig) {
    rig.install().await;
    for (n, state) in (1..).zip(states()) {
        let sample = Sample::new(n).state(state, None);
        let (sample, id) = match n % 2 {
            0 => (sample.client_id(&format!("mine-{n}")), Some(format!("mine-{n}"))),
            _ => (sample, None),
        };
        let uid = stage::accept(&rig.store, sample).await;
        let id = id.unwrap_or(uid.to_string());
        assert_eq!(rig.word("emails", &id).await, status_000(state, Told::No), "{state:?}");
        assert_eq!(rig.word("messages", &id).await, status_001(state, Standing::Plain), "{state:?}");
        assert_eq!(rig.word("email_outbox", &id).await, status_004(state), "{state:?}");
        assert_eq!(rig.word("email_logs", &id).await, status_004(state), "{state:?}");
    }
    let all = rig.show("emails", &["id", "tenant_id"], "1 = 1", "1").await;
    assert_eq!(all.len(), states().count());
    assert!(all.iter().all(|row| row[1].as_deref() == Some(TENANT)));
}

/// The words of a message's history, in order.
async fn history(rig: &Rig, uid: MessageUid) -> (Vec<String>, Vec<String>) {
    let words =
        |rows: Vec<Vec<Option<String>>>| rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect();
    let of_000 = rig.show("email_statuses", &["status"], &format!("email_id = '{uid}'"), "id").await;
    let condition = format!("\"emailLogId\" = '{uid}'");
    let of_004 = rig.show("email_events", &["type", "createdAt"], &condition, "\"createdAt\"").await;
    (words(of_000), words(of_004))
}

/// All kinds in one history, in the order of their codes.
async fn every_event_is_told_or_left_out(rig: Rig) {
    rig.install().await;
    let uid = rig.accept_with(Sample::new(1), EventKind::ALL).await;
    // The resolution is followed by a withdrawal, and the calls come after ends other than being sent.
    let sense = |kind| match kind {
        EventKind::Notifying | EventKind::Notified => Sense::Failed,
        _ => Sense::Plain,
    };
    let told = |words: fn(EventKind, Sense) -> Option<&'static str>| -> Vec<&str> {
        EventKind::ALL.iter().filter_map(|kind| words(*kind, sense(*kind))).collect()
    };
    let (of_000, of_004) = history(&rig, uid).await;
    assert_eq!(of_000, told(history_000));
    // They are of one time, so only their number and kinds are known.
    let mut expected = told(event_004);
    expected.sort_unstable();
    let mut of_004 = of_004;
    of_004.sort_unstable();
    assert_eq!(of_004, expected);
}

/// A retry is one after an attempt; a resolution is what came of it; a call is about how the message had ended.
async fn what_an_event_led_to_is_told(rig: Rig) {
    use EventKind::{
        Accepted, Failed, InDoubt, Notified, Notifying, Replayed, Resolved, Scheduled, Sending, Sent,
    };
    rig.install().await;
    for (n, state, kinds, of_000, of_004) in [
        (
            1,
            State::Sent,
            vec![Scheduled, Sending, Scheduled],
            "READY PROCESSING READY",
            "SENT_ATTEMPT RETRY_SCHEDULED",
        ),
        (2, State::Sent, vec![InDoubt, Resolved], "PROCESSING SENT", "SENT"),
        (3, State::Failed, vec![InDoubt, Resolved], "PROCESSING FAILED", "FAILED"),
        (4, State::Ready, vec![InDoubt, Resolved], "PROCESSING READY", "VALIDATED"),
        (
            5,
            State::Sent,
            vec![Resolved, Sending, Sent],
            "READY PROCESSING SENT",
            "VALIDATED SENT_ATTEMPT SENT",
        ),
        (6, State::Ready, vec![Resolved, Replayed], "FAILED READY", "FAILED VALIDATED"),
        (7, State::Sent, vec![Accepted, Notifying, Notified], "ACCEPTED", "RECEIVED"),
        (
            8,
            State::Sent,
            vec![Sent, Notifying, Notified],
            "SENT CALLING-SENT-CALLBACK SENT-ACKNOWLEDGED",
            "SENT",
        ),
        (9, State::Failed, vec![Failed, Notifying], "FAILED CALLING-FAILED-CALLBACK", "FAILED"),
        (
            10,
            State::Sent,
            vec![Failed, Replayed, Sending, Notifying],
            "FAILED READY PROCESSING",
            "FAILED SENT_ATTEMPT VALIDATED",
        ),
    ] {
        let uid = rig.accept_with(Sample::new(n).state(state, None), &kinds).await;
        let (found_000, mut found_004) = history(&rig, uid).await;
        assert_eq!(found_000.join(" "), of_000, "{n}");
        let mut expected: Vec<&str> = of_004.split(' ').collect();
        expected.sort_unstable();
        found_004.sort_unstable();
        assert_eq!(found_004, expected, "{n}");
    }
}

/// With its batch and with its tenant, and not one that waits for its time.
async fn a_suspended_message_is_suspended(rig: Rig) {
    rig.install().await;
    let waiting = stage::accept(&rig.store, Sample::new(1).batch("spring").send_at(9_000)).await;
    stage::accept(&rig.store, Sample::new(2).batch("spring").client_id("spring")).await;
    stage::accept(&rig.store, Sample::new(3).client_id("other")).await;
    let batch = SuspensionScope::Batch("spring".parse().unwrap());
    stage::suspend(&rig.store, batch.clone()).await;
    let words = async || [rig.word("messages", "spring").await, rig.word("messages", "other").await];
    assert_eq!(words().await, ["SUSPENDED", "PENDING"]);
    assert_eq!(rig.word("messages", &waiting.to_string()).await, "DEFERRED");
    stage::suspend(&rig.store, SuspensionScope::Tenant).await;
    assert_eq!(words().await, ["SUSPENDED", "SUSPENDED"]);
    stage::activate(&rig.store, SuspensionScope::Tenant).await;
    stage::activate(&rig.store, batch).await;
    assert_eq!(words().await, ["PENDING", "PENDING"]);
    let shown = rig.one("messages", &["batch_code", "priority", "account_id"], "id = 'spring'").await;
    assert_eq!(shown, [Some("spring".into()), Some("2".into()), Some(sample::ACCOUNT.into())]);
    let deferred = rig.one("messages", &["deferred_ts"], &format!("id = '{waiting}'")).await;
    assert_eq!(deferred, [Some(at(9_000).as_seconds().to_string())]);
}

/// Calls the webhook `hook` about whatever is due, once.
async fn call(rig: &Rig, token: i64, ms: i64, state: NotificationState) {
    let now = at(ms);
    let who = DueSubscriber { tenant: tenant(), subscriber: "hook".parse().unwrap() };
    let request = ReportRequest { lease: sample::lease(token, now), now, wants: vec![(who, 9)] };
    let notified = rig.store.claim_notifications(request).await.unwrap().into_iter().map(|one| Notified {
        key: one.key,
        token: sample::lease(token, now).token,
        at: now,
        state,
        due_at: None,
        call: Some(Call {
            at: now,
            latency_ms: 1,
            status: Some(200),
            request: "{}".into(),
            answer: String::new(),
        }),
        tells_history: true,
    });
    let notified: Vec<Notified> = notified.collect();
    if state != NotificationState::Calling {
        assert!(rig.store.settle_notifications(notified).await.unwrap().iter().all(|held| *held));
    }
}

/// While it is called, between two calls, and in the end.
async fn who_was_told_is_told(rig: Rig) {
    rig.install().await;
    subscribe(&rig.store, webhook(TENANT, "hook")).await;
    for (n, outcome, words) in [
        (1, Outcome::Sent, ["SENT", "CALLING-SENT-CALLBACK", "SENT-ACKNOWLEDGED", "REPORTED"]),
        (2, Outcome::Failed, ["FAILED", "CALLING-FAILED-CALLBACK", "FAILED-ACKNOWLEDGED", "REPORTED"]),
    ] {
        let ms = i64::from(n) * 1_000_000;
        let uid = rig.end(Sample::new(n), outcome).await;
        let id = uid.to_string();
        tell(&rig.store, at(ms)).await;
        assert_eq!(rig.word("emails", &id).await, words[0]);
        call(&rig, 7, ms, NotificationState::Calling).await;
        assert_eq!(rig.word("emails", &id).await, words[1]);
        // The lease is lost, and the rest goes well: `accepted` first, then the end.
        rig.store.reclaim_notifications(&[], at(ms + 900_000), 99).await.unwrap();
        call(&rig, 8, ms + 900_001, NotificationState::Acknowledged).await;
        assert_eq!(rig.word("emails", &id).await, words[0], "its end was not told");
        call(&rig, 9, ms + 900_002, NotificationState::Acknowledged).await;
        assert_eq!(rig.word("emails", &id).await, words[2]);
        let shown = rig.one("messages", &["status", "reported_ts"], &format!("id = '{id}'")).await;
        assert_eq!(shown, [Some(words[3].into()), Some(at(ms + 900_002).as_seconds().to_string())]);
        let (history, _) = history(&rig, uid).await;
        assert_eq!(history[history.len() - 2..], words[1..3], "{history:?}");
    }
}

/// Beside the word, with what the report said.
async fn a_bounce_is_told(rig: Rig) {
    rig.install().await;
    let uid = rig.end(Sample::new(1), Outcome::Sent).await;
    let key = watch(&rig.store, "bounces").await;
    register(&rig.store, page(&key, None, (5, 1), vec![mail(1)])).await;
    let one = take(&rig.store, 4, at(50), 1).await.remove(0);
    let finding = |kind, bounce: Option<&str>, data: &str| Finding {
        message: uid,
        position: Some(0),
        kind,
        data: Some(data.to_owned()),
        bounce: bounce.map(str::to_owned),
        suppress: None,
        receipt: None,
    };
    let bounce = r#"{"type":"hard","code":"5.1.1","reason":"user_unknown \u0000","at":null}"#;
    let findings = vec![
        finding(EventKind::PecAccepted, None, "{}"),
        finding(EventKind::Bounced, Some(bounce), "{}"),
        finding(EventKind::PecFailed, None, r#"{"reason":"non consegnato"}"#),
    ];
    assert!(
        settle(&rig.store, Routed { findings, ..routed(&one, 4, InboundState::Routed, at(60_000)) }).await
    );
    let columns =
        ["status", "bounce_type", "bounce_code", "sent_ts", "pec_error", "bounce_reported_ts", "error_ts"];
    let shown = rig.one("messages", &columns, &format!("id = '{uid}'")).await;
    let sent = at(2).as_seconds().to_string();
    let expected =
        [Some("BOUNCED"), Some("hard"), Some("5.1.1"), Some(&sent), Some("non consegnato"), None, None];
    assert_eq!(shown.iter().map(|text| text.as_deref()).collect::<Vec<_>>(), expected);
    let times =
        rig.one("messages", &["bounce_ts", "pec_rda_ts", "bounce_reason"], &format!("id = '{uid}'")).await;
    // 2023-11-14 22:13:20 UTC is the start of every test.
    assert!(
        times[..2]
            .iter()
            .all(|time| time.as_ref().is_some_and(|time| time.starts_with("2023-11-14 22:14:20")))
    );
    assert!(times[2].as_ref().is_some_and(|reason| reason.starts_with("user_unknown")), "{times:?}");
    assert_eq!(rig.word("emails", &uid.to_string()).await, "SENT");
}

/// Registers some mail in the mailbox `orders`.
async fn arrive(rig: &Rig, mails: Vec<NewInbound>) {
    let key = watch(&rig.store, "orders").await;
    register(&rig.store, page(&key, None, (5, 100), mails)).await;
}

async fn every_state_of_incoming_mail_has_its_word(rig: Rig) {
    rig.install().await;
    let gone = NewInbound { digest: None, body: None, state: InboundState::Gone, ..mail(1) };
    arrive(&rig, (2..=7).map(mail).chain([gone]).collect()).await;
    let mut state_of = vec![(1, InboundState::Gone)];
    let ends = [InboundState::Routed, InboundState::NoMatch, InboundState::Waiting, InboundState::Dead];
    let mut claimed = take(&rig.store, 4, at(1), 5).await.into_iter();
    for (one, to) in claimed.by_ref().zip(ends) {
        let end =
            Routed { error: Some("why".to_owned()), due_at: Some(at(9_000)), ..routed(&one, 4, to, at(2)) };
        let end = Routed { due_at: end.due_at.filter(|_| to == InboundState::Waiting), ..end };
        assert!(settle(&rig.store, end).await);
        state_of.push((one.imap_uid, to));
    }
    state_of.push((6, InboundState::Routing));
    state_of.push((7, InboundState::Received));
    assert_eq!(state_of.len(), InboundState::ALL.len());
    for (imap_uid, state) in state_of {
        let shown =
            rig.one("monitored_emails_tasks", &["status", "subject"], &format!("uid = {imap_uid}")).await;
        let subject = format!("Order {imap_uid} 📬");
        assert_eq!(shown, [Some(status_002(state, Forwarded::Nothing).into()), Some(subject)], "{state:?}");
    }
    // Tried once, of another date than its arrival, and told from a mail of the same uid in a folder numbered anew.
    let shown = rig.one("monitored_emails_tasks", &["attempt_count", "uid_validity"], "uid = 2").await;
    assert_eq!(shown, [Some("1".into()), Some("5".into())]);
    let dates = rig.one("monitored_emails_tasks", &["email_date", "arrived_at"], "uid = 2").await;
    assert!(dates[0].is_some() && dates[0] < dates[1], "{dates:?}");
    let columns = [
        "email_address",
        "email_password",
        "description",
        "is_active",
        "last_seen_uid",
        "folder",
        "tenant_id",
    ];
    let shown = rig.one("monitored_emails", &columns, "id = 'orders'").await;
    let active = shown[3].clone().unwrap();
    assert!(["1", "true"].contains(&&*active), "{active}");
    let expected = [
        Some("größe@example.net"),
        None,
        Some("orders"),
        Some(&*active),
        Some("100"),
        Some("orders"),
        Some(TENANT),
    ];
    assert_eq!(shown.iter().map(|text| text.as_deref()).collect::<Vec<_>>(), expected);
}

/// Not before, and an error where it failed.
async fn mail_is_forwarded_once_its_message_is_sent(rig: Rig) {
    rig.install().await;
    arrive(&rig, (1..=3).map(mail).collect()).await;
    let sent = rig.end(Sample::new(1), Outcome::Sent).await;
    let failed = rig.end(Sample::new(2), Outcome::Failed).await;
    let open = stage::accept(&rig.store, Sample::new(3)).await;
    let claimed = take(&rig.store, 4, at(1), 9).await;
    for (one, message) in claimed.iter().zip([sent, failed, open]) {
        // The first copy of each went out.
        let messages = vec![("copy".parse().unwrap(), sent), ("forward".parse().unwrap(), message)];
        assert!(settle(&rig.store, Routed { messages, ..routed(one, 4, InboundState::Routed, at(2)) }).await);
    }
    let words = async || {
        let rows = rig.show("monitored_emails_tasks", &["status"], "1 = 1", "uid").await;
        rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(words().await, ["forwarded", "error", "in_progress"]);
    let mut claimed = stage::claim(&rig.store, 5, at(3), 1).await.remove(0);
    assert!(stage::commit_wire(&rig.store, &mut claimed, at(3)).await);
    assert!(stage::apply(&rig.store, stage::outcome(&claimed, true, Outcome::Sent, at(4))).await);
    assert_eq!(words().await, ["forwarded", "error", "forwarded"]);
}

/// And unless they are no JSON; what is no text at all spoils no view.
async fn bodies_are_shown_unless_they_are_sensitive(rig: Rig) {
    rig.install().await;
    let request = r#"{"subject":"Hi","html":"<p>Größe</p>"}"#;
    let requests = [
        ("open", false, request.as_bytes()),
        ("secret", true, request.as_bytes()),
        ("raw", false, b"Subject: \xff\xfe\x00\r\n\r\n{".as_slice()),
        ("nul", false, br#"{"html":"a\u0000b"}"#.as_slice()),
    ];
    for (number, (id, sensitive, payload)) in (1..).zip(requests) {
        let sample = Sample::new(number).client_id(id).content(|content| {
            content.sensitive = sensitive;
            content.payload = Some(Body::Inline(payload.to_vec().into()));
        });
        stage::accept(&rig.store, sample).await;
    }
    let payloads = rig.show("messages", &["id", "payload"], "1 = 1", "id").await;
    let payload = |id: &str| payloads.iter().find(|row| row[0].as_deref() == Some(id)).unwrap()[1].as_deref();
    assert_eq!((payload("open"), payload("secret"), payload("raw")), (Some(request), None, None));
    let shown = rig.show("email_outbox", &["outboxId", "html", "subject", "to"], "1 = 1", "1").await;
    let of = |id: &str| shown.iter().find(|row| row[0].as_deref() == Some(id)).unwrap().clone();
    assert_eq!(of("open")[1].as_deref(), Some("<p>Größe</p>"));
    assert_eq!(of("open")[2..], [Some("Message 1".to_owned()), Some("person-1@example.org".to_owned())]);
    assert_eq!(of("secret")[1..3], [None, Some("[hidden]".to_owned())]);
    assert_eq!(of("raw")[1], None);
}
