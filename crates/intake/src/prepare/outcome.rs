//! The outcome of a preparation, and the change that writes it.

use std::time::Duration;

use postway_domain::{
    EventKind, MessageState, MessageStatus, Time,
    message::{TransitionInput, transition},
};
use postway_store::{
    StoreError,
    record::{MessageChange, NewEvent, PreparationResult, PreparedMessage, ToPrepare, WriteFence},
};
use rand::Rng;

use crate::{
    accept::compose::passed_state,
    fetch::FetchError,
    refusal::{FieldFault, Refusal},
};

/// The delays between tries at fetching, in seconds. After the last the message is refused.
const DELAYS: [u64; 9] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800];
/// The longest delay that a source may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(8 * 60 * 60);
/// While the gateway's own store or storage does not answer, the delay stops growing after this many tries.
const TRIES_OF_OURS: i64 = 3;
/// Delays are up to this fraction longer, so that messages that failed together are not retried together.
const JITTER: f64 = 0.25;
/// The longest delay of a fetch: the last delay with its jitter, or what a source asks for.
pub const FETCH_DELAY_MAX: Duration = Duration::from_secs(10 * 60 * 60);
const _: () = assert!(DELAYS[DELAYS.len() - 1] as f64 * (1.0 + JITTER) <= FETCH_DELAY_MAX.as_secs() as f64);
const _: () = assert!(RETRY_AFTER_MAX.as_secs() <= FETCH_DELAY_MAX.as_secs());
/// After this many lost leases in a row, a message is suspected of crashing its preparers.
const LOST_LEASES_MAX: i64 = 3;
/// After this many tries, a suspect is refused.
const SUSPECTED_MAX: i64 = 3;

/// How a preparation ended.
pub(super) enum PreparationOutcome {
    /// The message is composed, and is sent at `send_at` or now.
    Passed { prepared: PreparedMessage, validated: String, send_at: Option<Time> },
    /// The message cannot be sent.
    Refused(FieldFault),
    /// A file could not be fetched.
    Unfetched(FetchError),
    /// The gateway's own store or storage did not answer.
    Unavailable(StoreError),
    /// The preparation was not finished.
    GivenBack,
}

impl PreparationOutcome {
    /// The outcome for a message whose preparation panicked.
    pub(super) fn poison() -> Self {
        Self::Refused(FieldFault::new("", "could not be composed"))
    }

    /// The outcome for a message whose preparers lost their leases again and again, if it is one. Another
    /// message may be to blame, so it is retried later, when chance has separated them; a message that keeps
    /// being a suspect is refused.
    pub(super) fn for_suspect(job: &ToPrepare) -> Option<Self> {
        if job.lost_leases < LOST_LEASES_MAX {
            return None;
        }
        if job.tries >= SUSPECTED_MAX {
            let message = "its preparation broke off too often: quarantined";
            return Some(Self::Refused(FieldFault::new("", message)));
        }
        let message = "its preparation broke off again and again".to_owned();
        Some(Self::Unfetched(FetchError {
            field: String::new(),
            message,
            transient: true,
            is_busy: false,
            retry_after: None,
        }))
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Invalid { details } => {
                let first = details.into_iter().next();
                Self::Refused(first.unwrap_or_else(|| FieldFault::new("", message)))
            }
            Refusal::Malformed { .. } | Refusal::TooLarge { .. } | Refusal::Conflict { .. } => {
                Self::Refused(FieldFault::new("", message))
            }
            Refusal::Busy { message } | Refusal::OverQuota { message, .. } => {
                Self::Unavailable(StoreError::Unavailable(message))
            }
            Refusal::Unavailable(error) => Self::Unavailable(error),
        }
    }

    /// The change that writes the outcome.
    pub(super) fn into_change(self, job: &ToPrepare, now: Time) -> MessageChange {
        let (to, due_at, events, preparation, error) = match self {
            Self::Passed { prepared, validated, send_at } => {
                let (to, event) = passed_state(MessageState::Validating, send_at);
                let validated = NewEvent { kind: EventKind::Validated, data: Some(validated) };
                let due_at = Some(send_at.unwrap_or(now));
                (to, due_at, vec![validated, event], Some(PreparationResult::Done(prepared)), None)
            }
            Self::Refused(fault) => refused(&fault),
            Self::Unfetched(error) if !error.transient => {
                refused(&FieldFault::new(error.field, error.message))
            }
            Self::Unfetched(FetchError { field, message, retry_after, .. }) => {
                let asked_for = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
                match delay(job.tries) {
                    Some(delay) => {
                        let failure = RetryReason { code: "FETCH_FAILED", field, message };
                        later(job, &failure, now.plus(delay.max(asked_for)))
                    }
                    None => {
                        refused(&FieldFault::new(field, format!("{message} (tried {} times)", job.tries + 1)))
                    }
                }
            }
            Self::Unavailable(error) => {
                tracing::warn!(uid = %job.uid, %error, "a message could not be prepared now");
                // What does not answer now comes back, so no message is refused for that; damage may be
                // permanent.
                let tries = if error.is_transient() { job.tries.min(TRIES_OF_OURS) } else { job.tries };
                match delay(tries) {
                    Some(delay) => later(job, &RetryReason::ours(), now.plus(delay)),
                    None => refused(&FieldFault::new("", RetryReason::ours().message)),
                }
            }
            Self::GivenBack => {
                let (to, _) = transition(MessageState::Validating, TransitionInput::LoseLease)
                    .expect("the table lets a message be given back");
                (to, None, Vec::new(), None, None)
            }
        };
        let is_given_back = to == MessageState::Accepted;
        MessageChange {
            uid: job.uid,
            fence: WriteFence {
                status: MessageStatus::Validating,
                token: Some(job.token),
                version: Some(job.version),
            },
            to,
            at: now,
            due_at,
            keep_token: false,
            retries: None,
            doubts: None,
            lost_leases: (!is_given_back).then_some(0),
            exhausted: false,
            error,
            events,
            recipients: Vec::new(),
            ends_open_recipients: transition(MessageState::Validating, TransitionInput::Refuse)
                .ok()
                .filter(|(state, _)| *state == to)
                .and_then(|(_, effects)| effects.ends_open_recipients),
            attempt: None,
            refund: None,
            preparation,
            erases_bodies: false,
            awaits_receipt: None,
        }
    }
}

type ChangeParts = (MessageState, Option<Time>, Vec<NewEvent>, Option<PreparationResult>, Option<String>);

fn refused(fault: &FieldFault) -> ChangeParts {
    let (to, effects) =
        transition(MessageState::Validating, TransitionInput::Refuse).expect("the table lets a check fail");
    fault.count();
    let (event_data, error) = fault.event_and_error();
    let event = NewEvent { kind: effects.event.unwrap_or(EventKind::Invalid), data: Some(event_data) };
    (to, None, vec![event], Some(PreparationResult::Refused), Some(error))
}

/// Why a message is retried.
struct RetryReason {
    code: &'static str,
    field: String,
    message: String,
}

impl RetryReason {
    /// The reason when our own systems fail. Details go to the operator's log only: they may not concern the
    /// sender.
    fn ours() -> Self {
        let message = "postway cannot reach or use something of its own: ask its operator".to_owned();
        Self { code: "UNAVAILABLE", field: String::new(), message }
    }
}

fn later(job: &ToPrepare, failure: &RetryReason, at: Time) -> ChangeParts {
    let (to, effects) = transition(MessageState::Validating, TransitionInput::FetchLater)
        .expect("the table lets a fetch be tried again");
    let RetryReason { code, field, message } = failure;
    let data = serde_json::json!({
        "why": "fetch", "due_at": at.to_string(), "field": field, "message": message, "try": job.tries + 1,
    });
    let shown = serde_json::json!({
        "code": code, "category": "transient", "phase": "validate", "message": field_message(field, message),
    });
    let event =
        NewEvent { kind: effects.event.unwrap_or(EventKind::Scheduled), data: Some(data.to_string()) };
    (to, None, vec![event], Some(PreparationResult::Later(at)), Some(shown.to_string()))
}

fn field_message(field: &str, message: &str) -> String {
    if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") }
}

/// The delay after this many tries; `None` after the last. A message that ends meanwhile ends like any other
/// waiting message.
fn delay(tries: i64) -> Option<Duration> {
    let seconds = usize::try_from(tries).ok().and_then(|tries| DELAYS.get(tries))?;
    Some(Duration::from_secs(*seconds).mul_f64(1.0 + rand::rng().random_range(0.0..JITTER)))
}
