//! Inbound mail, and what it says about sent mail, as subscribers get it.

use bytes::Bytes;
use postway_domain::{
    EventKind, InboundState, Incarnation, LeaseToken, MessageUid, Time, WatchedMailbox,
    inbound::FolderCursor,
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    tenant::{CallbackForm, RemoteAuth},
};
use postway_store::{
    DirectoryStore, InboundStore,
    record::{
        ChangeResult, DirectoryChange, InboundMailResult, LeaseGrant, MailboxKey, MailboxPage,
        MessageFinding, NewInbound, NotificationState, ProcessRequest, RegistrationResult,
    },
};
use postway_testkit::SourceReply;
use serde_json::json;

use super::{Client, TestGateway, json, taken, tenant};

impl TestGateway {
    /// A mail arrives and is processed as `edit` says.
    async fn mail(&self, edit: impl FnOnce(&mut InboundMailResult)) -> MessageUid {
        let key = MailboxKey { tenant: tenant(), mailbox: "box".parse().unwrap() };
        let made = DirectoryChange::CreateMailbox(mailbox(&key, self.now()));
        assert_eq!(self.store.change(made, None).await.unwrap(), ChangeResult::Done);
        let uid = MessageUid::new(self.now(), &mut rand::rng());
        let mail = NewInbound {
            uid,
            folder: "INBOX".to_owned(),
            imap_uid: 1,
            digest: Some([1; 32]),
            size: 1,
            arrived_at: None,
            dated_at: None,
            sender: None,
            recipients: None,
            subject: None,
            message_id: None,
            body: Some(Bytes::from_static(b"x").into()),
            state: InboundState::Received,
            error: None,
        };
        let to = FolderCursor { uid_validity: 1, last_uid: 1, not_before: None, old_through: 0 };
        let page = MailboxPage { key, seen: None, to, uid_next: 2, at: self.now(), mails: vec![mail] };
        assert_eq!(self.store.register(page).await.unwrap(), RegistrationResult::Done { new: 1, known: 0 });
        let (now, token) = (self.now(), LeaseToken::from_i64(1));
        let until = Time::from_millis(now.as_millis() + 60_000);
        let lease = LeaseGrant { incarnation: Incarnation::from_bytes([9; 16]), token, until };
        self.store.claim_inbound(ProcessRequest::new(lease, now, 1)).await.unwrap();
        let mut routed = InboundMailResult {
            uid,
            token,
            at: now,
            to: InboundState::Routed,
            due_at: None,
            tries: 0,
            was_tried: true,
            lost_leases: 0,
            error: None,
            kind: None,
            result: None,
            tags: Vec::new(),
            messages: Vec::new(),
            follow_up: None,
            reminders: 0,
            findings: Vec::new(),
            received: None,
        };
        edit(&mut routed);
        assert_eq!(self.store.settle_inbound(vec![routed]).await.unwrap(), [true]);
        uid
    }
}

fn mailbox(key: &MailboxKey, now: Time) -> WatchedMailbox {
    WatchedMailbox {
        tenant: key.tenant.clone(),
        id: key.mailbox.clone(),
        settings: MailboxSettings {
            host: "imap.example.com".to_owned(),
            port: 993,
            tls: MailboxTls::Implicit,
            ca_pem: None,
            username: "u".to_owned(),
            auth: MailboxAuth::Password,
            oauth: None,
            folder: "INBOX".to_owned(),
            roles: vec![MailboxRole::Forward, MailboxRole::Bounces],
            active: true,
            description: None,
            poll_seconds: 60,
            start: WatchStart::Now,
            proxy: None,
            all_tenants: false,
            attempts_max: 3,
            on_doubt: None,
            mail_bytes_max: None,
        },
        secret: None,
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

#[tokio::test]
async fn a_webhook_is_told_of_mail_that_came_in_by_what_the_rule_saw() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let room = gateway.open(1);
    let uid = gateway.mail(|routed| routed.received = Some(r#"{"subject":"question"}"#.to_owned())).await;
    gateway.all_told(&[uid]).await;
    let [call] = &gateway.received("/hook")[..] else { panic!("one call") };
    let body = json(call);
    assert_eq!((&body["type"], &body["sequence"]), (&json!("email.received"), &json!(1)));
    assert_eq!(body["data"], json!({"subject": "question"}));
    gateway.close(room).await;
}

#[tokio::test]
async fn mail_that_came_in_means_nothing_to_a_client_that_is_told_of_its_messages() {
    let gateway =
        TestGateway::with(Some(Client { form: CallbackForm::Batch, auth: RemoteAuth::Basic })).await;
    gateway.receiver.serve("/sync", SourceReply::ok(r#"{"ok":true}"#));
    let sent = gateway.message(1, &[EventKind::Sent]).await;
    let room = gateway.open(1);
    let uid = gateway.mail(|routed| routed.received = Some("{}".to_owned())).await;
    gateway.all_told(&[sent]).await;
    let delivered = gateway.notifications(uid).await;
    assert!(delivered.iter().all(|one| one.state != NotificationState::Dead), "{delivered:?}");
    gateway.close(room).await;
}

#[tokio::test]
async fn a_bounce_is_told_with_what_is_known_of_the_recipient() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let sent = gateway.message(1, &[EventKind::Sent]).await;
    let room = gateway.open(1);
    gateway.all_told(&[sent]).await;
    let bounce = json!({"type": "hard", "code": "5.1.1", "reason": "user_unknown", "at": gateway.now()});
    let finding = MessageFinding {
        message: sent,
        position: Some(0),
        kind: EventKind::Bounced,
        data: Some(r#"{"status":"5.1.1","smtp_code":550}"#.to_owned()),
        bounce: Some(bounce.to_string()),
        suppress: None,
        receipt: None,
    };
    gateway.mail(|routed| routed.findings = vec![finding]).await;
    super::until(async || (gateway.received("/hook").len() == 2).then_some(())).await;
    let body = json(&gateway.received("/hook")[1]);
    assert_eq!((&body["type"], &body["data"]["status"]), (&json!("email.bounced"), &json!("sent")));
    let data = &body["data"];
    assert_eq!((&data["outcome"], &data["bounce"]), (&json!("bounced"), &bounce));
    assert_eq!(
        (&data["recipients"][0]["outcome"], &data["recipients"][0]["bounce"]),
        (&json!("bounced"), &bounce)
    );
    gateway.close(room).await;
}

/// The callback of an outbox has no code for unproven reports.
#[tokio::test]
async fn a_report_without_proof_is_told_as_such_to_all_who_have_a_word_for_it() {
    for form in [CallbackForm::Outbox, CallbackForm::Batch] {
        let gateway = TestGateway::with(Some(Client { form, auth: RemoteAuth::Basic })).await;
        gateway.webhook("hook").await;
        gateway.receiver.serve("/hook", taken());
        gateway.receiver.serve("/sync", SourceReply::ok(r#"{"ok":true}"#));
        let sent = gateway.message(1, &[EventKind::Sent]).await;
        let room = gateway.open(1);
        gateway.all_told(&[sent]).await;
        let calls = gateway.received("/sync").len();
        let finding = MessageFinding {
            message: sent,
            position: Some(0),
            kind: EventKind::UnprovenReport,
            data: Some(r#"{"says":"bounced","proof":"recipient_only","type":"hard"}"#.to_owned()),
            bounce: None,
            suppress: None,
            receipt: None,
        };
        gateway.mail(|routed| routed.findings = vec![finding]).await;
        super::until(async || (gateway.received("/hook").len() == 2).then_some(())).await;
        let body = json(&gateway.received("/hook")[1]);
        assert_eq!(
            (&body["type"], &body["data"]["status"]),
            (&json!("email.unproven_report"), &json!("sent"))
        );
        let (data, event) = (&body["data"], &body["data"]["event"]["data"]);
        assert_eq!((&event["says"], &event["proof"]), (&json!("bounced"), &json!("recipient_only")));
        assert_eq!((&data["outcome"], &data["bounce"]), (&json!(null), &json!(null)));
        gateway.all_told(&[sent]).await;
        let later = gateway.received("/sync").split_off(calls);
        assert_eq!(later.len(), usize::from(form == CallbackForm::Batch), "{later:?}");
        if let [call] = &later[..] {
            let entry = &json(call)["delivery_report"][0];
            let said = [&entry["status"], &entry["proof"], &entry["says"]];
            assert_eq!(said, ["unproven_report", "recipient_only", "bounced"]);
            // Nothing that a client would act on.
            let mut fields = entry.as_object().unwrap().keys();
            assert!(!fields.any(|name| name.ends_with("_ts") || name.starts_with("bounce")), "{entry}");
        }
        gateway.close(room).await;
    }
}
