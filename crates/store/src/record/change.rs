//! The fenced writes of workers and operators.

use std::borrow::Cow;

use postway_domain::{
    AccountId, EventKind, Lane, LeaseToken, MessageState, MessageStatus, MessageUid, RecipientStatus, Time,
    message::{
        InvalidTransition, LeaseEffect, OtherRecipients, ScheduleReason, TransitionInput, reason, transition,
    },
};
use serde_json::{Map, Value, json};

use super::{claim::SendingPermit, prepare::PreparationResult};

/// The permission to write the final dot, to be made durable.
#[derive(Clone, Debug)]
pub struct WireCommit {
    /// The message.
    pub uid: MessageUid,
    /// Its lane. If the lane was suspended in the meantime, permission is refused.
    pub lane: Lane,
    /// The account that sends it, if that is not the lane's account; it may be suspended, too.
    pub via: Option<AccountId>,
    /// The claim's token.
    pub token: LeaseToken,
    /// The version that the claim returned.
    pub version: i64,
    /// The current time.
    pub at: Time,
    /// What is known about recipients before the final dot, if the relay did not accept all of them. After a
    /// crash only the accepted ones can be in doubt.
    pub recipients: Vec<RecipientChange>,
    /// The number of the attempt, if its recipients may have the mail already: the history then says
    /// `resent`.
    pub resend: Option<i64>,
}

impl WireCommit {
    /// The input that it is to the state table.
    pub(crate) fn input(&self) -> TransitionInput {
        if self.resend.is_some() { TransitionInput::CommitResend } else { TransitionInput::CommitWire }
    }

    /// The event that it adds to the history, if any.
    pub(crate) fn event(&self) -> Option<NewEvent> {
        let attempt = self.resend?;
        let (_, effects) = transition(MessageState::Sending { wire_committed: false }, self.input()).ok()?;
        effects.event.map(|kind| NewEvent { kind, data: Some(json!({"attempt": attempt}).to_string()) })
    }
}

/// The fence: what must still be true for a change to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteFence {
    /// The expected status.
    pub status: MessageStatus,
    /// The token of the lease, if the writer has one.
    pub token: Option<LeaseToken>,
    /// The expected version; `None` only for a late answer that settles a doubt by its token.
    pub version: Option<i64>,
}

/// One state change of one message, with everything that is written together with it.
#[derive(Clone, Debug)]
pub struct MessageChange {
    /// The message.
    pub uid: MessageUid,
    /// The condition for the write.
    pub fence: WriteFence,
    /// The new state.
    pub to: MessageState,
    /// The current time.
    pub at: Time,
    /// When it is due next, for states that wait to be claimed.
    pub due_at: Option<Time>,
    /// Whether the lease token is kept, so that the late answer of an attempt in doubt can still settle it.
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
    /// The events to append to its history, in order.
    pub events: Vec<NewEvent>,
    /// The recipients that change.
    pub recipients: Vec<RecipientChange>,
    /// The status of the recipients that are still open after `recipients` is applied.
    pub ends_open_recipients: Option<RecipientStatus>,
    /// The attempt that ended.
    pub attempt: Option<AttemptEnd>,
    /// The permit to give back, because nothing was sent with it.
    pub refund: Option<SendingPermit>,
    /// The result of its preparation, if it was being prepared.
    pub preparation: Option<PreparationResult>,
    /// Whether its bytes and its request are removed, because it is sensitive and has been sent.
    pub erases_bodies: bool,
    /// The time by which a receipt must have arrived, if it was sent as certified mail.
    pub awaits_receipt: Option<Time>,
}

impl MessageChange {
    /// The number of body bytes that it writes into a row.
    pub(crate) fn inline_bytes(&self) -> usize {
        let Some(PreparationResult::Done(prepared)) = &self.preparation else { return 0 };
        prepared.raw.inline().map_or(0, |bytes| bytes.len())
    }

    /// Whether it changes the status.
    pub fn moves(&self) -> bool {
        self.to.status() != self.fence.status
    }

    /// The change that the state table prescribes for a message in this state, and nothing else. A withdrawal
    /// or an expiry that leaves a doubt behind says so in the failure to show.
    pub fn step(
        uid: MessageUid,
        fence: WriteFence,
        state: MessageState,
        input: TransitionInput,
        at: Time,
    ) -> Result<Self, InvalidTransition> {
        let (to, effects) = transition(state, input)?;
        let leaves_doubt = matches!(
            input,
            TransitionInput::Cancel(OtherRecipients::InDoubt)
                | TransitionInput::Expire(OtherRecipients::InDoubt)
        );
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
            MessageState::Accepted
            | MessageState::Validating
            | MessageState::Scheduled(ScheduleReason::Fetch) => None,
            _ => self.due_at,
        }
    }

    /// Its events as they are written. If the message waits for an operator instead, because one decided so
    /// after it was claimed, the events announce no further attempt.
    pub(crate) fn events_to_write(&self, is_held: bool) -> Cow<'_, [NewEvent]> {
        match is_held && self.due_at.is_some() {
            true => self.events.iter().map(NewEvent::without_next).collect(),
            false => Cow::Borrowed(&self.events),
        }
    }
}

/// A new event; the store assigns its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The kind of the event.
    pub kind: EventKind,
    /// The event data as a JSON object.
    pub data: Option<String>,
}

impl NewEvent {
    /// The event of a message that waits for an operator: everything that it says about a next attempt is
    /// removed.
    fn without_next(&self) -> Self {
        let data = self.data.as_deref().map(|data| match serde_json::from_str::<Map<String, Value>>(data) {
            Ok(mut data_object) => {
                data_object.shift_remove("due_at");
                for (name, value) in
                    [("will_retry", json!(false)), ("next_attempt", Value::Null), ("backoff_ms", Value::Null)]
                {
                    data_object.entry(name).and_modify(|before| *before = value);
                }
                Value::Object(data_object).to_string()
            }
            Err(_) => data.to_owned(),
        });
        Self { kind: self.kind, data }
    }
}

/// The new status of one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientChange {
    /// Its position in the message.
    pub position: u32,
    /// The new status.
    pub status: RecipientStatus,
    /// The relay's reply about it.
    pub reply: Option<SmtpReply>,
}

/// A relay's reply as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmtpReply {
    /// The three-digit code.
    pub code: Option<u16>,
    /// The enhanced code as text.
    pub enhanced: Option<String>,
    /// The text, shortened.
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
    /// The account that was used.
    pub account: AccountId,
    /// The server.
    pub remote: Option<String>,
    /// Its outcome as a word.
    pub outcome: &'static str,
    /// The relay's last reply.
    pub reply: Option<SmtpReply>,
    /// The relay's own id of the mail.
    pub provider_message_id: Option<String>,
    /// What both sides said, if the attempt failed.
    pub dialogue: Option<String>,
}
