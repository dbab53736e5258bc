//! The conclusion of processing a mail: what is written, and when a failed mail is tried again.

use std::time::Duration;

use postway_domain::{InboundState, LeaseToken, MessageUid, Time, id::RuleId};
use postway_store::{
    StoreError,
    record::{InboundMailResult, MailToProcess, MessageFinding, NewDomainReport},
};
use postway_trace::TraceContext;
use rand::Rng;
use serde_json::{Map, Value};

use super::imap_actions::ImapActions;
use crate::mail::bounded;

/// The first wait before a mail is tried again; each further wait is four times as long.
const WAIT_FIRST: Duration = Duration::from_secs(30);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// How long a mail waits while the store, or something else that it needs, is away.
const AWAY: Duration = Duration::from_secs(5);
/// The longest error that is stored.
const ERROR_CHARS_MAX: usize = 1_000;

/// Why a mail could not be processed now.
#[derive(Debug)]
pub(super) enum ProcessFailure {
    /// The store is away; this does not count as a try.
    Away(StoreError),
    /// Another failure; it counts as a try.
    Failed(String),
    /// No further try can help.
    Hopeless(String),
    /// The mail waits for something in Postway; this does not count as a try.
    Postponed { wait: Duration, why: String },
}

impl ProcessFailure {
    /// The failure in one word, for spans.
    pub(super) fn trace_code(&self) -> &'static str {
        match self {
            Self::Away(_) => "store_away",
            Self::Failed(_) => "failed",
            Self::Hopeless(_) => "hopeless",
            Self::Postponed { .. } => "postponed",
        }
    }
}

impl From<StoreError> for ProcessFailure {
    fn from(error: StoreError) -> Self {
        if error.is_transient() { Self::Away(error) } else { Self::Failed(error.to_string()) }
    }
}

/// What has been done so far. It is kept if processing is cut off.
#[derive(Default)]
pub(super) struct MailProgress {
    pub kind: Option<&'static str>,
    pub messages: Vec<(RuleId, MessageUid)>,
    pub tags: Vec<String>,
    pub findings: Vec<MessageFinding>,
    /// Whether subscribers are notified of the mail.
    pub notifies: bool,
    /// The event that notifies them.
    pub received: Option<String>,
    /// The reports about domains that it brings.
    pub domain_reports: Vec<NewDomainReport>,
    pub result: Map<String, Value>,
    /// Whether anything was done, so that the mail does not count as lost if the rest fails.
    pub has_effect: bool,
    pub follow_up: Option<(RuleId, Time)>,
    pub reminders: i64,
    /// The span that what follows from the mail is under.
    pub trace: Option<TraceContext>,
}

impl MailProgress {
    /// The progress of a mail with which nothing has been done yet.
    pub(super) fn for_job(job: &MailToProcess) -> Self {
        Self { reminders: job.reminders, ..Self::default() }
    }
}

/// How processing a mail ended.
pub(super) enum MailVerdict {
    /// The mail was used.
    Routed,
    /// The mail was used, and this remark is stored with it.
    RoutedBut(String),
    /// Nothing was to be done, for this reason.
    NoMatch(String),
    /// The mail was used, and these actions on its server are left.
    ImapActions(ImapActions),
}

/// Whether this is a reminder of a mail that was routed before.
pub(super) fn is_reminder(job: &MailToProcess) -> bool {
    job.follow_up.is_some() && job.before != InboundState::Received
}

/// The record to write.
pub(super) fn conclude(
    job: &MailToProcess,
    token: LeaseToken,
    progress: MailProgress,
    ended: Result<MailVerdict, ProcessFailure>,
    attempts_max: u32,
    now: Time,
) -> InboundMailResult {
    let mut routed = InboundMailResult {
        uid: job.uid,
        token,
        at: now,
        to: InboundState::Routed,
        due_at: None,
        tries: 0,
        was_tried: !matches!(ended, Err(ProcessFailure::Away(_) | ProcessFailure::Postponed { .. })),
        // This process survived the mail, which clears it of suspicion; if the store was away, processing may
        // never have begun.
        lost_leases: if matches!(ended, Err(ProcessFailure::Away(_))) { job.lost_leases } else { 0 },
        error: None,
        kind: progress.kind,
        result: (!progress.result.is_empty()).then(|| Value::Object(progress.result).to_string()),
        tags: progress.tags,
        messages: progress.messages,
        follow_up: None,
        reminders: progress.reminders.max(job.reminders),
        findings: progress.findings,
        received: progress.received,
        domain_reports: progress.domain_reports,
    };
    let failure = match ended {
        Ok(verdict) => {
            (routed.follow_up, routed.due_at) =
                progress.follow_up.map_or((None, None), |(rule, at)| (Some(rule), Some(at)));
            match verdict {
                // Actions on the server have been run or given up before this.
                MailVerdict::Routed | MailVerdict::ImapActions(_) => {}
                MailVerdict::RoutedBut(text) => routed.error = Some(text),
                MailVerdict::NoMatch(why) => {
                    routed.to = InboundState::NoMatch;
                    routed.error = Some(why);
                }
            }
            routed.error = routed.error.map(|error| bounded(&error, ERROR_CHARS_MAX));
            return routed;
        }
        Err(failure) => failure,
    };
    // Findings are dropped on failure; the retry computes them again.
    (routed.findings, routed.received) = (Vec::new(), None);
    routed.follow_up = job.follow_up.clone().filter(|_| is_reminder(job));
    let (tries, wait, error) = match failure {
        ProcessFailure::Away(error) => (job.tries, Some(AWAY), format!("waits: {error}")),
        ProcessFailure::Failed(error) => {
            let tries = job.tries + 1;
            (tries, (tries < i64::from(attempts_max)).then(|| wait(job.tries, &mut rand::rng())), error)
        }
        ProcessFailure::Hopeless(error) => (job.tries + 1, None, error),
        ProcessFailure::Postponed { wait, why } => (job.tries, Some(wait), why),
    };
    routed.tries = tries;
    routed.error = Some(bounded(&error, ERROR_CHARS_MAX));
    match wait {
        Some(wait) => {
            routed.to = InboundState::Waiting;
            routed.due_at = Some(now.plus(wait));
        }
        // A later failure does not undo what was sent.
        None if progress.has_effect || is_reminder(job) => routed.to = InboundState::Routed,
        None => routed.to = InboundState::Dead,
    }
    if routed.to == InboundState::Routed {
        (routed.follow_up, routed.due_at) =
            progress.follow_up.map_or((None, None), |(rule, at)| (Some(rule), Some(at)));
        routed.tries = 0;
    }
    routed
}

/// The conclusion of a mail whose mailbox could not be read because the store was away.
pub(super) fn put_off(
    job: &MailToProcess,
    token: LeaseToken,
    error: StoreError,
    now: Time,
) -> InboundMailResult {
    conclude(job, token, MailProgress::for_job(job), Err(ProcessFailure::Away(error)), u32::MAX, now)
}

/// Gives a mail back unchanged, without counting a try.
pub(super) fn given_back(job: &MailToProcess, token: LeaseToken, now: Time) -> InboundMailResult {
    InboundMailResult {
        uid: job.uid,
        token,
        at: now,
        to: job.before,
        due_at: Some(now),
        tries: job.tries,
        was_tried: false,
        lost_leases: job.lost_leases,
        error: None,
        kind: None,
        result: None,
        tags: Vec::new(),
        messages: Vec::new(),
        follow_up: job.follow_up.clone(),
        reminders: job.reminders,
        findings: Vec::new(),
        received: None,
        domain_reports: Vec::new(),
    }
}

/// The wait after a failed try that followed `tries` others.
fn wait(tries: i64, random: &mut impl Rng) -> Duration {
    let power = u32::try_from(tries.clamp(0, 8)).unwrap_or(8);
    let wait = WAIT_FIRST.saturating_mul(4_u32.saturating_pow(power)).min(WAIT_MAX);
    wait.mul_f64(1.0 + 0.25 * random.random::<f64>())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use postway_store::record::{MailboxKey, StoredBody};

    use super::*;

    fn now() -> Time {
        Time::from_millis(1_700_000_000_000)
    }

    fn job(tries: i64, before: InboundState, follow_up: Option<&str>) -> MailToProcess {
        MailToProcess {
            uid: MessageUid::new(now(), &mut rand::rng()),
            key: MailboxKey { tenant: "t".parse().unwrap(), mailbox: "m".parse().unwrap() },
            folder: "INBOX".to_owned(),
            uid_validity: 1,
            imap_uid: 1,
            digest: [0; 32],
            body: StoredBody::Inline(Bytes::new()),
            before,
            tries,
            lost_leases: 1,
            arrived_at: None,
            created_at: now(),
            messages: Vec::new(),
            follow_up: follow_up.map(|rule| rule.parse().unwrap()),
            reminders: 0,
        }
    }

    fn concluded(
        job: &MailToProcess,
        progress: MailProgress,
        ended: Result<MailVerdict, ProcessFailure>,
    ) -> InboundMailResult {
        conclude(job, LeaseToken::new(&mut rand::rng()), progress, ended, 3, now())
    }

    fn failed() -> Result<MailVerdict, ProcessFailure> {
        Err(ProcessFailure::Failed("no".to_owned()))
    }

    #[test]
    fn a_failed_mail_waits_longer_each_time_and_is_dead_after_the_last_try() {
        let mut waited = Duration::ZERO;
        for tries in 0..2 {
            let routed =
                concluded(&job(tries, InboundState::Waiting, None), MailProgress::default(), failed());
            assert_eq!((routed.to, routed.tries), (InboundState::Waiting, tries + 1));
            let wait = routed.due_at.unwrap().since(now());
            assert!(wait > waited);
            waited = wait;
        }
        let routed = concluded(&job(2, InboundState::Waiting, None), MailProgress::default(), failed());
        assert_eq!(
            (routed.to, routed.due_at, routed.error.as_deref()),
            (InboundState::Dead, None, Some("no"))
        );
    }

    #[test]
    fn what_was_done_is_kept_where_the_rest_fails_for_good() {
        let done = || MailProgress {
            has_effect: true,
            messages: vec![("r".parse().unwrap(), MessageUid::new(now(), &mut rand::rng()))],
            ..MailProgress::default()
        };
        let routed = concluded(&job(0, InboundState::Received, None), done(), failed());
        assert_eq!((routed.to, routed.messages.len()), (InboundState::Waiting, 1));
        let routed = concluded(&job(2, InboundState::Waiting, None), done(), failed());
        assert_eq!((routed.to, routed.error.as_deref()), (InboundState::Routed, Some("no")));
    }

    #[test]
    fn while_the_store_is_away_no_try_is_used() {
        let away = || Err(ProcessFailure::Away(StoreError::Unavailable("away".to_owned())));
        let routed = concluded(&job(2, InboundState::Received, None), MailProgress::default(), away());
        assert_eq!((routed.to, routed.tries, routed.lost_leases), (InboundState::Waiting, 2, 1));
    }

    #[test]
    fn a_reminder_that_fails_stays_a_reminder_and_one_that_cannot_be_sent_does_not_kill_the_mail() {
        let reminder = job(0, InboundState::Routed, Some("r"));
        let routed = concluded(&reminder, MailProgress::default(), failed());
        assert_eq!((routed.to, routed.follow_up.is_some()), (InboundState::Waiting, true));
        let routed = concluded(&job(2, InboundState::Waiting, Some("r")), MailProgress::default(), failed());
        assert_eq!((routed.to, routed.tries), (InboundState::Routed, 0));
    }

    #[test]
    fn what_is_given_back_stands_as_it_stood_and_what_was_dealt_with_is_acquitted() {
        let token = LeaseToken::new(&mut rand::rng());
        for before in [InboundState::Received, InboundState::Waiting, InboundState::Routed] {
            let back = given_back(&job(2, before, Some("r")), token, now());
            assert_eq!((back.to, back.tries, back.lost_leases), (before, 2, 1));
            assert_eq!((back.due_at, back.follow_up.is_some()), (Some(now()), true));
        }
        let suspect = job(0, InboundState::Waiting, None);
        assert_eq!(concluded(&suspect, MailProgress::default(), Ok(MailVerdict::Routed)).lost_leases, 0);
        let later = ProcessFailure::Postponed { wait: Duration::ZERO, why: "later".to_owned() };
        let later = concluded(&suspect, MailProgress::default(), Err(later));
        assert_eq!((later.to, later.due_at), (InboundState::Waiting, Some(now())));
        assert_eq!((later.tries, later.lost_leases), (0, 0));
    }

    #[test]
    fn a_try_is_one_whatever_came_of_it_unless_nobody_got_to_it() {
        let mail = job(0, InboundState::Received, None);
        let tried = |ended| concluded(&mail, MailProgress::default(), ended).was_tried;
        assert!(
            tried(Ok(MailVerdict::Routed))
                && tried(Ok(MailVerdict::NoMatch("no".to_owned())))
                && tried(failed())
        );
        let later = ProcessFailure::Postponed { wait: Duration::ZERO, why: "later".to_owned() };
        assert!(!tried(Err(later)));
        assert!(!tried(Err(ProcessFailure::Away(StoreError::Unavailable("away".to_owned())))));
    }

    #[test]
    fn no_further_try_is_made_of_what_cannot_work() {
        let ended = Err(ProcessFailure::Hopeless("too large".to_owned()));
        let routed = concluded(&job(0, InboundState::Received, None), MailProgress::default(), ended);
        assert_eq!(routed.to, InboundState::Dead);
    }
}
