//! Inbound mail, and what it says about sent mail, as subscribers get it.

use bytes::Bytes;
use postway_domain::{
    EventKind, InboundState, Incarnation, LeaseToken, MessageUid, SubscriberKind, Time, WatchedMailbox,
    attachment_link::{AttachmentLink, LinkedMail, RECEIVED_LINK_LASTS},
    inbound::FolderCursor,
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    tenant::{CallbackForm, RemoteAuth},
};
use postway_notify::{ReceivedFile, ReceivedMail, ReceivedPerson};
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

/// A mail with one file that fits into a call, and one that does not.
pub(super) fn read_mail(raw: &[u8]) -> ReceivedMail {
    let text = String::from_utf8_lossy(raw).into_owned();
    let person = |name: Option<&str>, address: &str| ReceivedPerson {
        name: name.map(ToOwned::to_owned),
        address: address.to_owned(),
    };
    let file = |name: &str, content_id: Option<&str>, content: Option<&[u8]>| ReceivedFile {
        filename: Some(name.to_owned()),
        content_type: "application/pdf".to_owned(),
        size: 3,
        content_id: content_id.map(ToOwned::to_owned),
        content: content.map(<[u8]>::to_vec),
    };
    ReceivedMail {
        from: Some(person(None, "bob@example.org")),
        to: vec![person(Some("Ada"), "desk+7@example.net"), person(None, "b@example.net")],
        headers: vec![("X-Of".to_owned(), "mail".to_owned())],
        html: Some(format!("<p>{text}</p>")),
        text: Some(text),
        files: vec![file("a.pdf", Some("logo"), Some(b"PDF")), file("b.pdf", None, None)],
        truncated: vec!["headers"],
        ..ReceivedMail::default()
    }
}

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
            body: Some(Bytes::from_static(b"the text").into()),
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
            domain_reports: Vec::new(),
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
            authserv_id: None,
            addresses: Vec::new(),
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
    let data = &body["data"];
    assert_eq!([&data["subject"], &data["text"], &data["html"]], ["question", "the text", "<p>the text</p>"]);
    assert_eq!(data["headers"], json!([{"name": "X-Of", "value": "mail"}]));
    assert_eq!(data["truncated"], json!(["headers"]));
    let files = data["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0]["filename"], &files[0]["size"]), (2, &json!("a.pdf"), &json!(3)));
    for (url, place) in [(&files[1]["url"], 1), (&data["raw"]["url"], AttachmentLink::WHOLE)] {
        let token = url.as_str().unwrap().strip_prefix("https://mail.example.com/files/").unwrap();
        let link = AttachmentLink::read(token, &super::secret_key()).unwrap();
        let until = gateway.now().plus(RECEIVED_LINK_LASTS);
        let mail = LinkedMail::Inbound;
        assert_eq!(link, AttachmentLink { mail, tenant: tenant(), uid, place, until });
    }
    gateway.close(room).await;
}

#[tokio::test]
async fn receivers_of_resend_and_postmark_get_mail_in_their_form() {
    let gateway = TestGateway::new().await;
    for (id, kind) in
        [("resend", SubscriberKind::ResendWebhook), ("postmark", SubscriberKind::PostmarkWebhook)]
    {
        let url = gateway.receiver.url(&format!("/{id}"));
        gateway.webhook_of_kind(&tenant(), id, url, kind).await;
        gateway.receiver.serve(&format!("/{id}"), taken());
    }
    let room = gateway.open(1);
    let event = json!({"subject": "question", "message_id": "1@x.example", "tags": ["order"],
        "received_at": "2030-01-31T09:00:00Z", "envelope": {"from": "", "to": ["desk+7@example.net"]}});
    let uid = gateway.mail(|routed| routed.received = Some(event.to_string())).await;
    gateway.all_told(&[uid]).await;
    let [call] = &gateway.received("/resend")[..] else { panic!("one call") };
    let body = json(call);
    assert_eq!([&body["type"], &body["data"]["message_id"]], ["email.received", "<1@x.example>"]);
    assert_eq!(body["data"]["to"], json!(["\"Ada\" <desk+7@example.net>", "b@example.net"]));
    let file = &body["data"]["attachments"][0];
    assert_eq!([&file["filename"], &file["content_disposition"]], ["a.pdf", "inline"]);
    let [call] = &gateway.received("/postmark")[..] else { panic!("one call") };
    let body = json(call);
    assert_eq!([&body["MessageStream"], &body["TextBody"], &body["Tag"]], ["inbound", "the text", "order"]);
    assert_eq!([&body["OriginalRecipient"], &body["MailboxHash"]], ["desk+7@example.net", "7"]);
    assert_eq!(body["ToFull"][0], json!({"Email": "desk+7@example.net", "Name": "Ada", "MailboxHash": "7"}));
    let (first, second) = (&body["Attachments"][0], &body["Attachments"][1]);
    assert_eq!([&first["Content"], &first["ContentID"], &second["Content"]], ["UERG", "logo", ""]);
    assert!(first["ContentURL"].is_null() && second["ContentURL"].is_string(), "what does not fit is a link");
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
