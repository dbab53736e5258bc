//! Inbound mail, as the inbound subsystem would store it.

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{Clock, InboundState, Incarnation, LeaseToken, MessageUid, Time, inbound::FolderCursor};
use postway_store::{
    InboundStore,
    record::{
        InboundMailResult, LeaseGrant, MailboxKey, MailboxPage, NewInbound, ProcessRequest,
        RegistrationResult,
    },
};
use serde_json::{Value, json};

use crate::support::Api;

impl Api {
    /// A mailbox of the tenant `default`.
    pub async fn mailbox(&self, id: &str, more: Value) -> Value {
        let mut body =
            json!({"id": id, "host": "imap.example.com", "username": id, "password": "first-secret"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/v1/mailboxes", body).await.ok(201)
    }

    /// A mail in a mailbox of the tenant `default`.
    pub async fn arrived(&self, mailbox: &str, raw: &str) -> MessageUid {
        let key = MailboxKey { tenant: "default".parse().unwrap(), mailbox: mailbox.parse().unwrap() };
        let seen = self.store.mailbox(&key).await.unwrap().unwrap().1.cursor;
        let last_uid = seen.map_or(0, |cursor| cursor.last_uid) + 1;
        let uid = MessageUid::new(self.clock.now(), &mut rand::rng());
        let mail = NewInbound {
            uid,
            folder: "INBOX".to_owned(),
            imap_uid: last_uid,
            digest: Some(sha256(raw)),
            size: raw.len() as u64,
            arrived_at: Some(self.clock.now()),
            dated_at: None,
            sender: Some("first-bob@example.net".to_owned()),
            recipients: Some("shop@example.com".to_owned()),
            subject: Some("first-question".to_owned()),
            message_id: Some("first-1@example.net".to_owned()),
            body: Some(Bytes::copy_from_slice(raw.as_bytes()).into()),
            state: InboundState::Received,
            error: None,
        };
        let to = FolderCursor { uid_validity: 7, last_uid, not_before: None, old_through: 0 };
        let at = self.clock.now();
        let page = MailboxPage { key, seen, to, uid_next: last_uid + 3, at, mails: vec![mail] };
        assert_eq!(self.store.register(page).await.unwrap(), RegistrationResult::Done { new: 1, known: 0 });
        uid
    }

    /// Deals with the one mail that is due, as `edit` says.
    pub async fn routed(&self, to: InboundState, edit: impl FnOnce(&mut InboundMailResult)) {
        let (now, token) = (self.clock.now(), LeaseToken::from_i64(5));
        let until = Time::from_millis(now.as_millis() + 60_000);
        let lease = LeaseGrant { incarnation: Incarnation::from_bytes([1; 16]), token, until };
        let request = ProcessRequest::new(lease, now, 1);
        let claimed = self.store.claim_inbound(request).await.unwrap().remove(0);
        let mut routed = InboundMailResult {
            uid: claimed.uid,
            token,
            at: now,
            to,
            due_at: None,
            tries: claimed.tries,
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
    }
}

pub fn sha256(text: &str) -> [u8; 32] {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().try_into().unwrap()
}
