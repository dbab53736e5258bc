//! The events of a message: its append-only history.

use serde::Serialize;

use crate::time::Time;

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)*) => {
        /// The kind of an event. Database, JSON and log use the same word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EventKind {
            $($(#[$doc])* $name = $code,)*
        }

        impl EventKind {
            /// Every kind.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name),*];

            /// The word users see.
            pub fn as_str(self) -> &'static str {
                match self { $(EventKind::$name => $word,)* }
            }

            /// From the code a store keeps.
            pub fn from_code(code: i64) -> Option<Self> {
                match code { $($code => Some(EventKind::$name),)* _ => None }
            }

            /// The code a store keeps: one byte instead of a word in the largest table.
            pub fn code(self) -> i64 {
                self as i64
            }
        }
    };
}

event_kinds! {
    /// Durable; the client has its `202`.
    Accepted = 1, "accepted";
    /// A validation step passed.
    Validated = 2, "validated";
    /// Refused by intake.
    Invalid = 3, "invalid";
    /// Can be sent.
    Ready = 4, "ready";
    /// Waits for its due time.
    Scheduled = 5, "scheduled";
    /// Claimed for an attempt.
    Sending = 6, "sending";
    /// The relay took responsibility.
    Sent = 7, "sent";
    /// Ended without being sent.
    Failed = 8, "failed";
    /// One recipient was refused permanently.
    RecipientFailed = 9, "recipient_failed";
    /// The dot was written and no answer is recorded.
    InDoubt = 10, "in_doubt";
    /// A message in doubt is being sent once more.
    Resent = 11, "resent";
    /// An operator or a late answer settled a doubt.
    Resolved = 12, "resolved";
    /// Cancelled before it was sent.
    Cancelled = 13, "cancelled";
    /// Its `expires_at` passed before it was sent.
    Expired = 14, "expired";
    /// Its recipients are on the suppression list.
    Suppressed = 15, "suppressed";
    /// A failed message was put back in the queue.
    Replayed = 16, "replayed";
    /// A report of delivery came.
    Delivered = 17, "delivered";
    /// A report of a delay came.
    Delayed = 18, "delayed";
    /// It bounced.
    Bounced = 19, "bounced";
    /// The recipient complained.
    Complained = 20, "complained";
    /// An automatic reply came.
    AutoReplied = 21, "auto_replied";
    /// PEC: accepted by the sender's provider.
    PecAccepted = 22, "pec_accepted";
    /// PEC: taken over by the recipient's provider.
    PecTakenOver = 23, "pec_taken_over";
    /// PEC: delivered.
    PecDelivered = 24, "pec_delivered";
    /// PEC: not accepted or not delivered.
    PecFailed = 25, "pec_failed";
    /// PEC: no acceptance in time.
    PecTimeout = 26, "pec_timeout";
    /// A subscriber is being notified.
    Notifying = 27, "notifying";
    /// A subscriber has been notified.
    Notified = 28, "notified";
    /// A mail came into a watched mailbox, and a rule notifies subscribers of it.
    Received = 29, "received";
    /// A report or receipt came that does not prove its statement, which its data has as `says`.
    UnprovenReport = 30, "unproven_report";
    /// The sandbox captured it; nothing was sent.
    Captured = 31, "captured";
    /// A preparer claimed it: files are being fetched, and then it is composed.
    Validating = 32, "validating";
    /// A reader unsubscribed from its stream.
    Unsubscribed = 33, "unsubscribed";
    /// A reader subscribed to its stream again.
    Resubscribed = 34, "resubscribed";
    /// A reply to it came.
    Replied = 35, "replied";
    /// Its provider reports that a reader opened it.
    Opened = 36, "opened";
    /// Its provider reports that a reader followed a link of it.
    Clicked = 37, "clicked";
    /// A suppression began. It belongs to no message.
    SuppressionCreated = 38, "suppression_created";
    /// A suppression ended. It belongs to no message.
    SuppressionDeleted = 39, "suppression_deleted";
}

impl EventKind {
    /// Whether such an event belongs to a message. The others stand under ids of their own.
    pub fn is_of_message(self) -> bool {
        !matches!(self, Self::Received | Self::SuppressionCreated | Self::SuppressionDeleted)
    }
}

/// One entry of a message's history.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageEvent {
    /// The position in the message's history, from 1.
    pub seq: i64,
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub kind: EventKind,
    /// The data of the event, as a JSON object.
    pub data: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_its_code_and_serializes_as_its_word() {
        for &kind in EventKind::ALL {
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
