//! Values for tests: deterministic, complete, and adjustable one field at a time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use postway_domain::{
    Account, AccountKind, AccountSettings, EventKind, Incarnation, Lane, LeaseToken, MessagePriority,
    MessageState, MessageUid, RecipientId, RecipientKind, RelayTlsMode, TenantId, Time, message::OnDoubt,
    message::ScheduleReason, secret::SealedSecret,
};
use postway_trace::TraceContext;

use crate::record::{
    AccountKey, BatchKey, DedupKind, LeaseGrant, MessageContent, NewEvent, NewMessage, NewRecipient,
    SmtpReply, StoredBody,
};

/// The tenant that samples belong to.
pub const TENANT: &str = "acme";
/// Another tenant, with accounts of the same names.
pub const OTHER_TENANT: &str = "globex";
/// The account that samples are sent by.
pub const ACCOUNT: &str = "relay";
/// Another account of both tenants.
pub const OTHER_ACCOUNT: &str = "backup";
/// How long sample leases last.
pub const LEASE_LASTS: Duration = Duration::from_secs(600);

const START_MS: i64 = 1_700_000_000_000;

/// Random bytes of this length, which do not compress.
pub fn noise(bytes: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..bytes).map(next).collect()
}

/// A time this many milliseconds after the start of every test.
pub fn at(ms: i64) -> Time {
    Time::from_millis(START_MS + ms)
}

/// The tenant that samples belong to.
pub fn tenant() -> TenantId {
    TENANT.parse().unwrap()
}

/// Another tenant.
pub fn other_tenant() -> TenantId {
    OTHER_TENANT.parse().unwrap()
}

/// An account by name.
pub fn key(tenant: &str, account: &str) -> AccountKey {
    AccountKey { tenant: tenant.parse().unwrap(), account: account.parse().unwrap() }
}

/// The account that samples are sent by.
pub fn relay() -> AccountKey {
    key(TENANT, ACCOUNT)
}

/// An SMTP account as a tenant would set it up.
pub fn account(tenant: &str, id: &str) -> Account {
    Account {
        tenant: tenant.parse().unwrap(),
        id: id.parse().unwrap(),
        settings: AccountSettings {
            kind: AccountKind::Smtp,
            host: Some("relay.example.net".to_owned()),
            port: Some(587),
            tls: RelayTlsMode::Starttls,
            username: Some("user".to_owned()),
            ..AccountSettings::sandbox()
        },
        secret: Some(SealedSecret(vec![7; 44])),
        version: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

/// The n-th process.
pub fn incarnation(n: u8) -> Incarnation {
    Incarnation::from_bytes([n; 16])
}

/// A lease of the first process, with this token.
pub fn lease(token: i64, now: Time) -> LeaseGrant {
    LeaseGrant {
        incarnation: incarnation(1),
        token: LeaseToken::from_i64(token),
        until: now.plus(LEASE_LASTS),
    }
}

/// An event without particulars.
pub fn event(kind: EventKind) -> NewEvent {
    NewEvent { kind, data: None }
}

/// A relay's reply.
pub fn reply(code: u16, text: &str) -> SmtpReply {
    SmtpReply { code: Some(code), enhanced: Some(format!("{}.0.0", code / 100)), text: text.to_owned() }
}

/// A message to be accepted. Starts as one that is ready and due at once, to one recipient.
#[derive(Clone, Debug)]
pub struct Sample {
    number: u32,
    message: NewMessage,
}

impl Sample {
    /// The n-th message. Of messages accepted at one time, those with a higher number have the higher uid.
    pub fn new(number: u32) -> Self {
        let message = NewMessage {
            uid: uid(at(0), number),
            lane: Lane {
                tenant: tenant(),
                account: ACCOUNT.parse().unwrap(),
                priority: MessagePriority::Normal,
                batch: None,
                destination: None,
            },
            client_id: None,
            idempotency: None,
            fingerprint: [0; 32],
            state: MessageState::Ready,
            due_at: Some(at(0)),
            created_at: at(0),
            expires_at: None,
            on_doubt: OnDoubt::Resend,
            recipients: Vec::new(),
            content: MessageContent {
                sender: "news@example.com".to_owned(),
                message_id: format!("{number}@example.com"),
                subject: format!("Message {number}"),
                request_id: None,
                external_id: None,
                tags: Vec::new(),
                metadata: None,
                eight_bit: false,
                smtputf8: false,
                raw: StoredBody::Inline(
                    format!("Subject: Message {number}\r\n\r\nHello {number}.\r\n").into(),
                ),
                payload: None,
                sensitive: false,
                dsn: None,
            },
            batch_key: None,
            error: None,
            collapse_key: None,
            events: vec![event(EventKind::Accepted), event(EventKind::Ready)],
            recipient: None,
            settled: None,
            trace: None,
        };
        Self { number, message }
    }

    /// Of this tenant and account.
    pub fn from(mut self, tenant: &str, account: &str) -> Self {
        self.message.lane.tenant = tenant.parse().unwrap();
        self.message.lane.account = account.parse().unwrap();
        self
    }

    /// At this place in a trace.
    pub fn traced(mut self, traceparent: &str) -> Self {
        self.message.trace = TraceContext::parse(traceparent.as_bytes());
        self
    }

    /// This urgent.
    pub fn priority(mut self, priority: MessagePriority) -> Self {
        self.message.lane.priority = priority;
        self
    }

    /// Part of this batch.
    pub fn batch(mut self, code: &str) -> Self {
        self.message.lane.batch = Some(code.parse().unwrap());
        self
    }

    /// In the lane of mail to these limited domains.
    pub fn to_destination(mut self, group: &str) -> Self {
        self.message.lane.destination = Some(group.parse().unwrap());
        self
    }

    /// To one more recipient; the first is To, the second Cc, the rest Bcc.
    pub fn to(mut self, address: &str) -> Self {
        let kind = match self.message.recipients.len() {
            0 => RecipientKind::To,
            1 => RecipientKind::Cc,
            _ => RecipientKind::Bcc,
        };
        self.message.recipients.push(NewRecipient { address: address.parse().unwrap(), kind });
        self
    }

    /// With the client's own id.
    pub fn client_id(mut self, id: &str) -> Self {
        self.message.client_id = Some(id.parse().unwrap());
        self
    }

    /// Of a request with this idempotency key.
    pub fn key(self, key: &str) -> Self {
        self.key_of(DedupKind::Request, key)
    }

    /// With an idempotency key of this kind.
    pub fn key_of(mut self, kind: DedupKind, key: &str) -> Self {
        self.message.idempotency = Some((kind, key.to_owned()));
        self
    }

    /// With the idempotency key of a call that brings messages of this digest.
    pub fn batch_key(mut self, key: &str, digest: u8) -> Self {
        self.message.batch_key = Some(Arc::new(BatchKey { key: key.to_owned(), fingerprint: [digest; 32] }));
        self
    }

    /// With a body of this digest; samples are otherwise of equal digest.
    pub fn body(mut self, digest: u8) -> Self {
        self.message.fingerprint = [digest; 32];
        self
    }

    /// Accepted, and due, this many milliseconds after the start.
    pub fn created(mut self, ms: i64) -> Self {
        self.message.created_at = at(ms);
        self.message.due_at = self.message.due_at.map(|_| at(ms));
        self
    }

    /// Not before this many milliseconds after the start, as its sender asked.
    pub fn send_at(mut self, ms: i64) -> Self {
        self.message.state = MessageState::Scheduled(ScheduleReason::SendAt);
        self.message.due_at = Some(at(ms));
        self.message.events = vec![event(EventKind::Accepted), event(EventKind::Scheduled)];
        self
    }

    /// In this state, due at this time.
    pub fn state(mut self, state: MessageState, due_at: Option<Time>) -> Self {
        self.message.state = state;
        self.message.due_at = due_at;
        self
    }

    /// Not to be sent this many milliseconds after the start, or later.
    pub fn expires(mut self, ms: i64) -> Self {
        self.message.expires_at = Some(at(ms));
        self
    }

    /// Held when in doubt.
    pub fn hold_in_doubt(mut self) -> Self {
        self.message.on_doubt = OnDoubt::Hold;
        self
    }

    /// In the place of an older one with the same key.
    pub fn collapse(mut self, key: &str) -> Self {
        self.message.collapse_key = Some(key.to_owned());
        self
    }

    /// Not composed yet: of this request, with what was settled of it.
    pub fn uncomposed(mut self, payload: &'static str, settled: Option<&str>) -> Self {
        self.message.state = MessageState::Accepted;
        self.message.due_at = None;
        self.message.events = vec![event(EventKind::Accepted)];
        self.message.content.raw = StoredBody::EMPTY;
        self.message.content.payload = Some(StoredBody::Inline(payload.into()));
        self.message.settled = settled.map(str::to_owned);
        self
    }

    /// For this entry of the directory of recipients.
    pub fn known(mut self, recipient: RecipientId) -> Self {
        self.message.recipient = Some(recipient);
        self
    }

    /// Any other part of it.
    pub fn content(mut self, edit: impl FnOnce(&mut MessageContent)) -> Self {
        edit(&mut self.message.content);
        self
    }

    /// The message.
    pub fn build(mut self) -> NewMessage {
        self.message.uid = uid(self.message.created_at, self.number);
        if self.message.recipients.is_empty() {
            let address = format!("person-{}@example.org", self.number);
            self = self.to(&address);
        }
        self.message
    }
}

/// A UUID v7 that sorts by time and number.
pub fn uid(created_at: Time, number: u32) -> MessageUid {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&created_at.as_millis().to_be_bytes()[2..]);
    bytes[6] = 0x70;
    bytes[8] = 0x80;
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    MessageUid::from_bytes(bytes)
}
