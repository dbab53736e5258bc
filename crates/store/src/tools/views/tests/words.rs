//! Every state and every event has its word.

use postway_domain::{
    EventKind, InboundState, MessageState, MessageUid, Subscriber,
    message::{
        AttemptOutcome,
        reason::{pec_error, pec_error_code},
    },
    reference::{
        CallbackProgress, EventConsequence, ForwardOutcome, RetryExpectation, Status001Basis, event_004,
        history_000, status_000, status_001, status_002, status_004,
    },
    subscriber::EventFilter,
};

use serde_json::Value;

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
        BegunCall, BlobName, BlobRef, DueSubscriber, InboundMailResult, MessageChange, MessageContent,
        MessageFinding, MessageKey, NewEvent, NewInbound, NotificationCall, NotificationResult,
        NotificationState, ReportRequest, StoredBody, SuspensionScope,
    },
};

on_each! {
    every_state_has_its_word_in_every_view
    every_event_is_told_or_left_out
    what_an_event_led_to_is_told
    every_delay_after_an_attempt_is_a_retry
    what_the_checks_found_is_told
    a_suspended_message_is_suspended
    who_was_told_is_told
    files_have_paths_that_exist
    a_bounce_is_told
    certified_mail_fails_in_the_words_of_its_provider
    every_state_of_incoming_mail_has_its_word
    mail_is_forwarded_once_its_message_is_sent
    mail_whose_message_left_no_trace_is_not_called_forwarded
    bodies_are_shown_unless_they_are_sensitive
}

/// From the time of the tests to a time that has not come.
const DECADES_MS: i64 = 50 * 365 * 86_400_000;

/// The name by which a state stands in the guide.
fn name(state: MessageState) -> String {
    match state.wait() {
        Some(wait) => format!("`{}` (`{}`)", state.status().as_str(), wait.as_str()),
        None => format!("`{}`", state.status().as_str()),
    }
}

#[test]
fn the_guide_says_the_same() {
    let guide = include_str!("../../../../../../docs/guide/moving/views.md");
    for state in states() {
        let words = [
            status_000(state, CallbackProgress::NotBegun),
            status_001(state, Status001Basis::Plain),
            status_004(state, RetryExpectation::Plain),
        ];
        let line = format!("| {} | {} |\n", name(state), words.join(" | "));
        assert!(guide.contains(&line), "{line}");
    }
    // The overview has one row for several states, and says beside a word when it is another.
    let overview = include_str!("../../../../../../docs/guide/moving/README.md");
    for state in states() {
        let rows = overview.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let mut rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
        let row = rows.find(|row| row.len() == 4 && row[0].split(", ").any(|one| one == name(state)));
        let row = row.unwrap_or_else(|| panic!("the overview lacks {}", name(state)));
        let words = [
            status_000(state, CallbackProgress::NotBegun),
            status_001(state, Status001Basis::Plain),
            status_004(state, RetryExpectation::Plain),
        ];
        for (cell, word) in row[1..].iter().zip(words) {
            assert_eq!(cell.split(';').next(), Some(word), "{}: {row:?}", name(state));
        }
    }
    for state in InboundState::ALL {
        let line = format!("| `{}` | {} |\n", state.as_str(), status_002(state, ForwardOutcome::Nothing));
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
        assert_eq!(rig.word("emails", &id).await, status_000(state, CallbackProgress::NotBegun), "{state:?}");
        assert_eq!(rig.word("messages", &id).await, status_001(state, Status001Basis::Plain), "{state:?}");
        assert_eq!(
            rig.word("email_outbox", &id).await,
            status_004(state, RetryExpectation::Plain),
            "{state:?}"
        );
        assert_eq!(
            rig.word("email_logs", &id).await,
            status_004(state, RetryExpectation::Plain),
            "{state:?}"
        );
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
        EventKind::Notifying | EventKind::Notified => EventConsequence::Failed,
        _ => EventConsequence::Plain,
    };
    let listed = |words: fn(EventKind, EventConsequence) -> Option<&'static str>| -> Vec<&str> {
        EventKind::ALL.iter().filter_map(|kind| words(*kind, sense(*kind))).collect()
    };
    let (of_000, of_004) = history(&rig, uid).await;
    assert_eq!(of_000, listed(history_000));
    // They are of one time, so only their number and kinds are known.
    let mut expected = listed(event_004);
    expected.sort_unstable();
    let mut of_004 = of_004;
    of_004.sort_unstable();
    assert_eq!(of_004, expected);
}

/// A retry is one after an attempt; a resolution is what came of it; a call is about how the message had
/// ended.
async fn what_an_event_led_to_is_told(rig: Rig) {
    use EventKind::{
        Accepted, Failed, InDoubt, Invalid, Notified, Notifying, Ready, Replayed, Resolved, Scheduled,
        Sending, Sent, Validated, Validating,
    };
    rig.install().await;
    for (n, state, kinds, of_000, of_004) in [
        (
            1,
            MessageState::Sent,
            vec![Scheduled, Sending, Scheduled],
            "READY PROCESSING READY",
            "SENT_ATTEMPT RETRY_SCHEDULED",
        ),
        (2, MessageState::Sent, vec![InDoubt, Resolved], "PROCESSING SENT", "SENT"),
        (3, MessageState::Failed, vec![InDoubt, Resolved], "PROCESSING FAILED", "FAILED"),
        (4, MessageState::Ready, vec![InDoubt, Resolved], "PROCESSING READY", "VALIDATED"),
        (
            5,
            MessageState::Sent,
            vec![Resolved, Sending, Sent],
            "READY PROCESSING SENT",
            "VALIDATED SENT_ATTEMPT SENT",
        ),
        (6, MessageState::Ready, vec![Resolved, Replayed], "FAILED READY", "FAILED VALIDATED"),
        (7, MessageState::Sent, vec![Accepted, Notifying, Notified], "ACCEPTED", "RECEIVED"),
        (
            8,
            MessageState::Sent,
            vec![Sent, Notifying, Notified],
            "SENT CALLING-SENT-CALLBACK SENT-ACKNOWLEDGED",
            "SENT",
        ),
        (9, MessageState::Failed, vec![Failed, Notifying], "FAILED CALLING-FAILED-CALLBACK", "FAILED"),
        (
            10,
            MessageState::Sent,
            vec![Failed, Replayed, Sending, Notifying],
            "FAILED READY PROCESSING",
            "FAILED SENT_ATTEMPT VALIDATED",
        ),
        (
            11,
            MessageState::Accepted,
            vec![Accepted, Validating, Scheduled, Validating, Invalid, Replayed],
            "ACCEPTED INTAKING ACCEPTED INTAKING INVALID ACCEPTED",
            "RECEIVED RECEIVED VALIDATION_FAILED",
        ),
        (12, MessageState::Ready, vec![Accepted, Validated, Ready], "ACCEPTED READY", "RECEIVED VALIDATED"),
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

/// Also one that takes no retry: the account is at fault, or the answer is missing and the mail is sent
/// again.
async fn every_delay_after_an_attempt_is_a_retry(rig: Rig) {
    rig.install().await;
    let listed = |kind, will_retry: bool| NewEvent {
        kind,
        data: Some(format!(
            r#"{{"attempt":1,"code":"SES_TIMEOUT","message":"no answer","will_retry":{will_retry},"next_attempt":2,"backoff_ms":900}}"#
        )),
    };
    let held = stage::accept_and_claim(&rig.store, Sample::new(1), 1).await;
    let change = stage::outcome(&held, false, AttemptOutcome::Returned, at(2));
    let events = vec![listed(EventKind::Ready, true)];
    assert!(stage::apply(&rig.store, MessageChange { due_at: Some(at(3)), events, ..change }).await);
    let mut doubts = Vec::new();
    for (n, due_at) in [(2, Some(at(3))), (3, None)] {
        let mut doubt = stage::accept_and_claim(&rig.store, Sample::new(n), i64::from(n)).await;
        assert!(stage::commit_wire(&rig.store, &mut doubt, at(1)).await);
        let change = stage::outcome(&doubt, true, AttemptOutcome::InDoubt, at(2));
        let events = vec![listed(EventKind::InDoubt, due_at.is_some())];
        assert!(stage::apply(&rig.store, MessageChange { due_at, events, ..change }).await);
        doubts.push(doubt.uid);
    }
    for (uid, words) in [
        (held.uid, ["RETRY_SCHEDULED", "RETRY_SCHEDULED"]),
        (doubts[0], ["RETRY_SCHEDULED", "RETRY_SCHEDULED"]),
        (doubts[1], ["SENT_ATTEMPT", "SENT_ATTEMPT"]),
    ] {
        assert_eq!(rig.word("email_outbox", &uid.to_string()).await, words[0]);
        let columns = ["status", "attempts"];
        let logged = rig.one("email_logs", &columns, &format!("\"outboxId\" = '{uid}'")).await;
        assert_eq!(logged, [Some(words[0].into()), Some("1".into())]);
        let (_, mut history) = history(&rig, uid).await;
        history.sort_unstable();
        assert_eq!(
            history.contains(&"RETRY_SCHEDULED".to_owned()),
            words[1] == "RETRY_SCHEDULED",
            "{history:?}"
        );
    }
    // Given back only to be ended: every recipient is suppressed by now.
    let ended = stage::accept_and_claim(&rig.store, Sample::new(4), 4).await;
    let change = stage::outcome(&ended, false, AttemptOutcome::Returned, at(2));
    assert!(
        stage::apply(&rig.store, MessageChange { events: vec![listed(EventKind::Ready, false)], ..change })
            .await
    );
    let (_, words) = history(&rig, ended.uid).await;
    assert!(!words.contains(&"RETRY_SCHEDULED".to_owned()), "{words:?}");
    let metadata = event_metadata(&rig, held.uid, "RETRY_SCHEDULED").await;
    for (name, value) in [("errorCode", "SES_TIMEOUT"), ("errorMessage", "no answer")] {
        assert_eq!(metadata[name], value, "{metadata}");
    }
    assert_eq!((&metadata["nextAttemptNumber"], &metadata["backoffDelay"]), (&2.into(), &900.into()));
    assert_eq!(metadata["willRetry"], true);
}

/// The particulars of one event of a message, as `email_events` has them.
async fn event_metadata(rig: &Rig, uid: MessageUid, word: &str) -> serde_json::Value {
    let condition = format!("\"emailLogId\" = '{uid}' AND \"type\" = '{word}'");
    let shown = rig.one("email_events", &["metadata"], &condition).await;
    serde_json::from_str(shown[0].as_deref().unwrap()).unwrap()
}

/// Those that passed, and the one that failed.
async fn what_the_checks_found_is_told(rig: Rig) {
    rig.install().await;
    let mut message = Sample::new(1).state(MessageState::Invalid, None).build();
    let event = |kind, data: &str| NewEvent { kind, data: Some(data.to_owned()) };
    message.events = vec![
        event(EventKind::Validated, r#"{"checks":[{"check":"INTEGRITY","bytes":9}],"warnings":["w"]}"#),
        event(
            EventKind::Invalid,
            r#"{"check":"RECIPIENT","code":"INVALID_EMAIL","field":"to","message":"is no address"}"#,
        ),
    ];
    let uid = message.uid;
    assert!(rig.store.accept(vec![message]).await.unwrap()[0].is_accepted());
    let passed = event_metadata(&rig, uid, "VALIDATED").await;
    assert_eq!(passed["checks"][0]["check"], "INTEGRITY", "{passed}");
    assert_eq!((&passed["checks"][0]["bytes"], &passed["warnings"][0]), (&9.into(), &"w".into()));
    let failed = event_metadata(&rig, uid, "VALIDATION_FAILED").await;
    for (name, value) in [
        ("check", "RECIPIENT"),
        ("errorCode", "INVALID_EMAIL"),
        ("field", "to"),
        ("errorMessage", "is no address"),
    ] {
        assert_eq!(failed[name], value, "{failed}");
    }
}

/// With its batch and with its tenant, and not one that waits for its time.
async fn a_suspended_message_is_suspended(rig: Rig) {
    rig.install().await;
    // Times of tests are of 2023, and the views know what time it is.
    let waiting = stage::accept(&rig.store, Sample::new(1).batch("spring").send_at(DECADES_MS)).await;
    let late = stage::accept(&rig.store, Sample::new(4).batch("spring").send_at(9_000)).await;
    stage::accept(&rig.store, Sample::new(2).batch("spring").client_id("spring")).await;
    stage::accept(&rig.store, Sample::new(3).client_id("other")).await;
    let batch = SuspensionScope::Batch("spring".parse().unwrap());
    stage::suspend(&rig.store, batch.clone()).await;
    let words = async || [rig.word("messages", "spring").await, rig.word("messages", "other").await];
    assert_eq!(words().await, ["SUSPENDED", "PENDING"]);
    assert_eq!(rig.word("messages", &waiting.to_string()).await, "DEFERRED");
    let of_late = async || rig.one("messages", &["status", "deferred_ts"], &format!("id = '{late}'")).await;
    assert_eq!(of_late().await, [Some("SUSPENDED".into()), None], "its time has passed");
    stage::suspend(&rig.store, SuspensionScope::Tenant).await;
    assert_eq!(words().await, ["SUSPENDED", "SUSPENDED"]);
    stage::activate(&rig.store, SuspensionScope::Tenant).await;
    stage::activate(&rig.store, batch).await;
    assert_eq!(words().await, ["PENDING", "PENDING"]);
    assert_eq!(of_late().await, [Some("PENDING".into()), None]);
    let shown = rig.one("messages", &["batch_code", "priority", "account_id"], "id = 'spring'").await;
    assert_eq!(shown, [Some("spring".into()), Some("2".into()), Some(sample::ACCOUNT.into())]);
    let deferred = rig.one("messages", &["deferred_ts"], &format!("id = '{waiting}'")).await;
    assert_eq!(deferred, [Some(at(DECADES_MS).as_seconds().to_string())]);
}

/// Calls `hook` about whatever is due, once; what is left calling is not settled.
async fn call(rig: &Rig, token: i64, ms: i64, state: NotificationState) {
    let now = at(ms);
    let who = DueSubscriber { tenant: tenant(), subscriber: "hook".parse().unwrap() };
    let request = ReportRequest { lease: sample::lease(token, now), now, wants: vec![(who, 9)] };
    let claimed = rig.store.claim_notifications(request).await.unwrap();
    let token = sample::lease(token, now).token;
    let begun = claimed.iter().map(|one| BegunCall { key: one.key.clone(), token, at: now });
    assert!(rig.store.begin_calls(begun.collect()).await.unwrap().iter().all(|held| *held));
    let notified = claimed.into_iter().map(|one| NotificationResult {
        key: one.key,
        token,
        at: now,
        state,
        due_at: None,
        call: Some(NotificationCall {
            at: now,
            latency_ms: 1,
            status: Some(200),
            request: "{}".into(),
            answer: String::new(),
        }),
        tells_history: true,
    });
    let notified: Vec<NotificationResult> = notified.collect();
    if state != NotificationState::Calling {
        assert!(rig.store.settle_notifications(notified).await.unwrap().iter().all(|held| *held));
    }
}

/// While it is called, between two calls, and in the end; each is a change, and a row of the history.
async fn who_was_told_is_told(rig: Rig) {
    rig.install().await;
    let only_ends = |subscriber: Subscriber| Subscriber {
        events: EventFilter(vec!["email.sent".to_owned(), "email.failed".to_owned()]),
        ..subscriber
    };
    subscribe(&rig.store, only_ends(webhook(TENANT, "hook"))).await;
    for (n, outcome, words) in [
        (1, AttemptOutcome::Sent, ["SENT", "CALLING-SENT-CALLBACK", "SENT-ACKNOWLEDGED", "REPORTED"]),
        (2, AttemptOutcome::Failed, ["FAILED", "CALLING-FAILED-CALLBACK", "FAILED-ACKNOWLEDGED", "REPORTED"]),
    ] {
        let ms = i64::from(n) * 1_000_000;
        let uid = rig.end(Sample::new(n), outcome).await;
        let id = uid.to_string();
        let shown = async || {
            let columns = ["status", "version", "updated_at"];
            let mut row = rig.one("emails", &columns, &format!("id = '{id}'")).await.into_iter().flatten();
            let (word, version) = (row.next().unwrap(), row.next().unwrap().parse::<i64>().unwrap());
            let last = history(&rig, uid).await.0.pop().unwrap();
            assert_eq!(word, last, "a status is the last of its history");
            (word, version, row.next().unwrap())
        };
        tell(&rig.store, at(ms)).await;
        let ended = shown().await;
        assert_eq!(ended.0, words[0]);
        call(&rig, 7, ms, NotificationState::Calling).await;
        let calling = shown().await;
        assert_eq!((&*calling.0, calling.1), (words[1], ended.1 + 1));
        assert!(calling.2 > ended.2, "{calling:?} {ended:?}");
        // The lease is lost, and so is what came of the call; the next one fails, and the last is taken.
        rig.store.reclaim_notifications(&[], at(ms + 900_000), 99).await.unwrap();
        assert_eq!(shown().await, calling, "there will be another call");
        call(&rig, 8, ms + 900_001, NotificationState::Waiting).await;
        let failed = shown().await;
        assert_eq!((&*failed.0, failed.1), (words[1], ended.1 + 2));
        call(&rig, 9, ms + 900_002, NotificationState::Acknowledged).await;
        let taken = shown().await;
        assert_eq!((&*taken.0, taken.1), (words[2], ended.1 + 4));
        assert!(failed.2 > calling.2 && taken.2 > failed.2, "{taken:?} {failed:?}");
        let reported = rig.one("messages", &["status", "reported_ts"], &format!("id = '{id}'")).await;
        assert_eq!(reported, [Some(words[3].into()), Some(at(ms + 900_002).as_seconds().to_string())]);
        let (history, _) = history(&rig, uid).await;
        assert_eq!(history[history.len() - 4..], [words[1], words[1], words[1], words[2]], "{history:?}");
        assert_eq!(
            rig.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap().summary.version,
            ended.1
        );
    }
    let given_up = rig.end(Sample::new(3), AttemptOutcome::Sent).await;
    tell(&rig.store, at(3_000_000)).await;
    call(&rig, 7, 3_000_000, NotificationState::Dead).await;
    assert_eq!(rig.word("emails", &given_up.to_string()).await, "SENT", "nobody is called any more");
}

/// Bytes that are files have their path below the root, and others none.
async fn files_have_paths_that_exist(rig: Rig) {
    rig.install().await;
    let blob = |byte: u8| BlobRef { name: BlobName { digest: [byte; 32], generation: 7 }, size: 9 };
    let kept = |raw: StoredBody, payload: Option<StoredBody>| {
        move |content: &mut MessageContent| (content.raw, content.payload) = (raw, payload)
    };
    let files = kept(StoredBody::Blob(blob(0xab)), Some(StoredBody::Blob(blob(0x0c))));
    stage::accept(&rig.store, Sample::new(1).client_id("files").content(files)).await;
    let inline = kept(StoredBody::Inline("a".into()), Some(StoredBody::Inline("{}".into())));
    stage::accept(&rig.store, Sample::new(2).client_id("inline").content(inline)).await;
    let columns = ["eml_file_path", "payload_file_path"];
    let (eml, payload) = (blob(0xab).name.to_string(), blob(0x0c).name.to_string());
    let expected = [Some(format!("ab/ab/{eml}")), Some(format!("0c/0c/{payload}"))];
    assert_eq!(rig.one("emails", &columns, "id = 'files'").await, expected);
    assert_eq!(rig.one("emails", &columns, "id = 'inline'").await, [None, None]);
}

/// Beside the word, with what the report said.
async fn a_bounce_is_told(rig: Rig) {
    rig.install().await;
    let uid = rig.end(Sample::new(1), AttemptOutcome::Sent).await;
    let key = watch(&rig.store, "bounces").await;
    register(&rig.store, page(&key, None, (5, 1), vec![mail(1)])).await;
    let one = take(&rig.store, 4, at(50), 1).await.remove(0);
    let finding = |kind, bounce: Option<&str>, data: &str| MessageFinding {
        message: uid,
        position: Some(0),
        kind,
        data: Some(data.to_owned()),
        bounce: bounce.map(str::to_owned),
        suppress: None,
        receipt: None,
    };
    let first = r#"{"type":"soft","status":"4.4.7","reason":"expired","diagnostic":""}"#;
    let bounce = r#"{"type":"hard","status":"5.1.1","smtp_code":550,"reason":"user_unknown",
        "diagnostic":"550 5.1.1 unknown \u0000"}"#;
    let failure = r#"{"receipt":"errore-consegna","error":"no-dest","error_text":"indirizzo non valido"}"#;
    let findings = vec![
        finding(EventKind::PecAccepted, None, "{}"),
        finding(EventKind::Bounced, Some("{}"), first),
        finding(EventKind::Bounced, Some("{}"), bounce),
        finding(EventKind::PecFailed, None, failure),
    ];
    assert!(
        settle(
            &rig.store,
            InboundMailResult { findings, ..routed(&one, 4, InboundState::Routed, at(60_000)) }
        )
        .await
    );
    let columns =
        ["status", "bounce_type", "bounce_code", "sent_ts", "pec_error", "bounce_reported_ts", "error_ts"];
    let shown = rig.one("messages", &columns, &format!("id = '{uid}'")).await;
    let sent = at(2).as_seconds().to_string();
    let words = Some("indirizzo non valido");
    let expected = [Some("BOUNCED"), Some("hard"), Some("550"), Some(&sent), words, None, None];
    assert_eq!(shown.iter().map(|text| text.as_deref()).collect::<Vec<_>>(), expected);
    let beside = rig
        .one("messages", &["bounce_status", "bounce_kind", "pec_error_code"], &format!("id = '{uid}'"))
        .await;
    assert_eq!(beside, ["5.1.1", "user_unknown", "no-dest"].map(|text| Some(text.to_owned())));
    let times =
        rig.one("messages", &["bounce_ts", "pec_rda_ts", "bounce_reason"], &format!("id = '{uid}'")).await;
    // 2023-11-14 22:13:20 UTC is the start of every test.
    assert!(
        times[..2]
            .iter()
            .all(|time| time.as_ref().is_some_and(|time| time.starts_with("2023-11-14 22:14:20")))
    );
    assert!(times[2].as_ref().is_some_and(|words| words.starts_with("550 5.1.1 unknown")), "{times:?}");
    assert_eq!(rig.word("emails", &uid.to_string()).await, "SENT");
}

/// As the events of each message say, with one sentence where none says anything.
async fn certified_mail_fails_in_the_words_of_its_provider(rig: Rig) {
    rig.install().await;
    for (n, kind, data) in (1..)
        .zip([
            (
                EventKind::PecFailed,
                Some(r#"{"receipt":"errore-consegna","error":"no-dest","error_text":"5.1.1 - non valido"}"#),
            ),
            (
                EventKind::PecFailed,
                Some(r#"{"receipt":"rilevazione-virus","error":"virus","error_text":""}"#),
            ),
            (EventKind::PecFailed, Some(r#"{"receipt":"preavviso-errore-consegna","error":"nessuno"}"#)),
            (EventKind::PecFailed, None),
            (EventKind::PecTimeout, None),
        ])
        .map(|(n, (kind, data))| (n, kind, data))
    {
        let mut message =
            Sample::new(n).client_id(&format!("pec-{n}")).state(MessageState::Sent, None).build();
        message.events = vec![NewEvent { kind, data: data.map(str::to_owned) }];
        rig.store.accept(vec![message]).await.unwrap();
        let particulars: Value = data.map_or(Value::Null, |data| serde_json::from_str(data).unwrap());
        let shown = rig.one("messages", &["pec_error", "pec_error_code"], &format!("id = 'pec-{n}'")).await;
        let expected = [pec_error(kind, &particulars), pec_error_code(kind, &particulars)];
        assert_eq!(shown.iter().map(|text| text.as_deref()).collect::<Vec<_>>(), expected, "{data:?}");
        let failed_at = rig.one("messages", &["pec_error_ts"], &format!("id = 'pec-{n}'")).await;
        assert!(failed_at[0].is_some(), "{kind:?} {data:?}");
    }
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
        let end = InboundMailResult {
            error: Some("why".to_owned()),
            due_at: Some(at(9_000)),
            ..routed(&one, 4, to, at(2))
        };
        let end = InboundMailResult { due_at: end.due_at.filter(|_| to == InboundState::Waiting), ..end };
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
        assert_eq!(
            shown,
            [Some(status_002(state, ForwardOutcome::Nothing).into()), Some(subject)],
            "{state:?}"
        );
    }
    // Tried once, with a date other than its arrival, and distinct from a mail with the same UID in a
    // renumbered folder.
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
    let sent = rig.end(Sample::new(1), AttemptOutcome::Sent).await;
    let failed = rig.end(Sample::new(2), AttemptOutcome::Failed).await;
    let open = stage::accept(&rig.store, Sample::new(3)).await;
    let claimed = take(&rig.store, 4, at(1), 9).await;
    for (one, message) in claimed.iter().zip([sent, failed, open]) {
        // The first copy of each went out.
        let messages = vec![("copy".parse().unwrap(), sent), ("forward".parse().unwrap(), message)];
        assert!(
            settle(&rig.store, InboundMailResult { messages, ..routed(one, 4, InboundState::Routed, at(2)) })
                .await
        );
    }
    let words = async || {
        let rows = rig.show("monitored_emails_tasks", &["status"], "1 = 1", "uid").await;
        rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(words().await, ["forwarded", "error", "in_progress"]);
    let mut claimed = stage::claim(&rig.store, 5, at(3), 1).await.remove(0);
    assert!(stage::commit_wire(&rig.store, &mut claimed, at(3)).await);
    assert!(stage::apply(&rig.store, stage::outcome(&claimed, true, AttemptOutcome::Sent, at(4))).await);
    assert_eq!(words().await, ["forwarded", "error", "forwarded"]);
}

/// Retention removes a final message, and later its tombstone: then its final state is unknown.
async fn mail_whose_message_left_no_trace_is_not_called_forwarded(rig: Rig) {
    rig.install().await;
    arrive(&rig, (1..=4).map(mail).collect()).await;
    let sent = rig.end(Sample::new(1), AttemptOutcome::Sent).await;
    let failed = rig.end(Sample::new(2), AttemptOutcome::Failed).await;
    let open = stage::accept(&rig.store, Sample::new(3)).await;
    let gone = Sample::new(4).build().uid;
    let beside = [None, Some(sent), Some(open), Some(failed)];
    for (one, other) in take(&rig.store, 4, at(1), 9).await.iter().zip(beside) {
        let other = other.map(|uid| ("copy".parse().unwrap(), uid));
        let messages = other.into_iter().chain([("forward".parse().unwrap(), gone)]).collect();
        assert!(
            settle(&rig.store, InboundMailResult { messages, ..routed(one, 4, InboundState::Routed, at(2)) })
                .await
        );
    }
    let rows = rig.show("monitored_emails_tasks", &["status"], "1 = 1", "uid").await;
    let words: Vec<_> = rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect();
    assert_eq!(words, ["unknown", "unknown", "in_progress", "error"]);
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
            content.payload = Some(StoredBody::Inline(payload.to_vec().into()));
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
