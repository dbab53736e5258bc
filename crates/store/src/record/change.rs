//! What a worker or an operator writes back.

use std::borrow::Cow;

use postway_domain::{
    AccountId, EventKind, Lane, LeaseToken, MessageUid, RecipientStatus, State, Status, Time,
    message::{Input, InvalidTransition, LeaseEffect, Rest, Wait, reason, transition},
};
use serde_json::{Map, Value, json};

use super::{claim::Permit, prepare::Preparation};

/// The permission to write the final dot, to be made durable.
#[derive(Clone, Debug)]
pub struct WireCommit {
    /// The message.
    pub uid: MessageUid,
    /// Its lane: what is suspended meanwhile gets no permission.
    pub lane: Lane,
    /// The account that sends it, where another stands in for the lane's: that one may be suspended, too.
    pub via: Option<AccountId>,
    /// The claim's token.
    pub token: LeaseToken,
    /// The version the claim gave.
    pub version: i64,
    /// Now.
    pub at: Time,
    /// What is known of recipients before the dot, where the relay did not accept them all: after a crash only those
    /// it accepted can be in doubt.
    pub recipients: Vec<RecipientChange>,
    /// The number of the attempt, where those it is for may have the mail already: its history says `resent` then.
    pub resend: Option<i64>,
}

impl WireCommit {
    /// What it does to the message.
    pub(crate) fn input(&self) -> Input {
        if self.resend.is_some() { Input::CommitResend } else { Input::CommitWire }
    }

    /// The entry that it adds to the history, if any.
    pub(crate) fn event(&self) -> Option<NewEvent> {
        let attempt = self.resend?;
        let (_, effects) = transition(State::Sending { wire_committed: false }, self.input()).ok()?;
        effects.event.map(|kind| NewEvent { kind, data: Some(json!({"attempt": attempt}).to_string()) })
    }
}

/// What must still be true for a change to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The status it had.
    pub status: Status,
    /// The token of the lease, where the writer holds one.
    pub token: Option<LeaseToken>,
    /// The version it had; `None` only for a late answer that settles a doubt by its token.
    pub version: Option<i64>,
}

/// One move of one message, with everything that is written beside it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The message.
    pub uid: MessageUid,
    /// The condition.
    pub fence: Fence,
    /// Where it goes.
    pub to: State,
    /// Now.
    pub at: Time,
    /// When it is due next, for states that wait to be claimed.
    pub due_at: Option<Time>,
    /// Whether the token stays (in doubt), so that the attempt's late answer can settle it.
    pub keep_token: bool,
    /// The number of retries used, if it changes.
    pub retries: Option<i64>,
    /// How often it has been in doubt, if it changes.
    pub doubts: Option<i64>,
    /// How often its lease was lost in a row, if it changes.
    pub lost_leases: Option<i64>,
    /// Whether it failed because retries ran out.
    pub exhausted: bool,
    /// The failure to show, as a JSON object; replaces the one before.
    pub error: Option<String>,
    /// Its history goes on with these, in order.
    pub events: Vec<NewEvent>,
    /// Recipients that change.
    pub recipients: Vec<RecipientChange>,
    /// What recipients still open become, after `recipients` is applied.
    pub ends_open_recipients: Option<RecipientStatus>,
    /// The attempt that ended.
    pub attempt: Option<AttemptEnd>,
    /// The permit it gives back, because nothing was sent with it.
    pub refund: Option<Permit>,
    /// What came of its preparation, where it was being prepared.
    pub preparation: Option<Preparation>,
    /// Whether its bytes and its request are removed: it was sensitive, and is sent.
    pub erases_bodies: bool,
    /// Until when a receipt must have come, where it was sent as certified mail.
    pub awaits_receipt: Option<Time>,
}

impl Change {
    /// How many bytes of a body it writes into a row.
    pub(crate) fn inline_bytes(&self) -> usize {
        let Some(Preparation::Done(prepared)) = &self.preparation else { return 0 };
        prepared.raw.inline().map_or(0, |bytes| bytes.len())
    }

    /// Whether the message stands elsewhere afterwards.
    pub(crate) fn moves(&self) -> bool {
        self.to.status() != self.fence.status
    }

    /// What the table makes of a message in this state, and nothing else. A withdrawal or an expiry that leaves a doubt
    /// behind says so as the failure to show.
    pub fn step(
        uid: MessageUid,
        fence: Fence,
        state: State,
        input: Input,
        at: Time,
    ) -> Result<Self, InvalidTransition> {
        let (to, effects) = transition(state, input)?;
        let leaves_doubt = matches!(input, Input::Cancel(Rest::Doubt) | Input::Expire(Rest::Doubt));
        let doubt = || {
            json!({"code": "in_doubt", "category": "unknown", "phase": "dot", "message": reason::DOUBT_REMAINS})
                .to_string()
        };
        Ok(Self {
            uid,
            fence,
            to,
            at,
            due_at: None,
            keep_token: effects.lease == LeaseEffect::Keep,
            retries: None,
            doubts: None,
            lost_leases: None,
            exhausted: false,
            error: leaves_doubt.then(doubt),
            events: effects.events().map(|kind| NewEvent { kind, data: None }).collect(),
            recipients: Vec::new(),
            ends_open_recipients: effects.ends_open_recipients,
            attempt: None,
            refund: None,
            preparation: None,
            erases_bodies: false,
            awaits_receipt: None,
        })
    }

    /// The same with these particulars in each entry of its history.
    pub fn telling(mut self, data: &serde_json::Value) -> Self {
        for event in &mut self.events {
            event.data = Some(data.to_string());
        }
        self
    }

    /// When a claim may take it: what waits to be prepared is not for dispatch.
    pub(crate) fn claimable_at(&self) -> Option<Time> {
        match self.to {
            State::Accepted | State::Validating | State::Scheduled(Wait::Fetch) => None,
            _ => self.due_at,
        }
    }

    /// Its events as they are written. Where it is held instead, because somebody saw to that since it was claimed, they tell
    /// of no other attempt.
    pub(crate) fn told(&self, is_held: bool) -> Cow<'_, [NewEvent]> {
        match is_held && self.due_at.is_some() {
            true => self.events.iter().map(NewEvent::without_next).collect(),
            false => Cow::Borrowed(&self.events),
        }
    }
}

/// An entry for the history; the store gives it its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// What happened.
    pub kind: EventKind,
    /// Particulars as a JSON object.
    pub data: Option<String>,
}

impl NewEvent {
    /// The same of a message that waits for somebody's word: whatever it says of a next attempt is taken back.
    fn without_next(&self) -> Self {
        let data = self.data.as_deref().map(|data| match serde_json::from_str::<Map<String, Value>>(data) {
            Ok(mut told) => {
                told.shift_remove("due_at");
                for (name, value) in
                    [("will_retry", json!(false)), ("next_attempt", Value::Null), ("backoff_ms", Value::Null)]
                {
                    told.entry(name).and_modify(|before| *before = value);
                }
                Value::Object(told).to_string()
            }
            Err(_) => data.to_owned(),
        });
        Self { kind: self.kind, data }
    }
}

/// What one recipient becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientChange {
    /// Its place in the message.
    pub position: u32,
    /// What it becomes.
    pub status: RecipientStatus,
    /// The relay's word on it.
    pub reply: Option<SmtpReply>,
}

/// A relay's reply, as kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmtpReply {
    /// The three digits.
    pub code: Option<u16>,
    /// The enhanced code as text.
    pub enhanced: Option<String>,
    /// The text, bounded.
    pub text: String,
}

/// An attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Its number.
    pub number: i64,
    /// When it was claimed.
    pub started_at: Time,
    /// How long it took.
    pub duration_ms: i64,
    /// By which account.
    pub account: AccountId,
    /// To which server.
    pub remote: Option<String>,
    /// How it ended, as a word.
    pub outcome: &'static str,
    /// The relay's last word.
    pub reply: Option<SmtpReply>,
    /// The relay's own id of the mail.
    pub provider_message_id: Option<String>,
}
