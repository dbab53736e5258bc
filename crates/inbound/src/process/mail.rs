//! Processes one mail from its lease to the outcome that is written.

use std::{sync::Arc, time::Duration};

use postway_domain::{LeaseToken, inbound::LOST_LEASES_MAX};
use postway_store::record::{InboundMailResult, MailToProcess, StoredBody};
use postway_trace::{Span, SpanKind};
use serde_json::json;

use super::{
    conclusion::{MailProgress, MailVerdict, ProcessFailure, conclude},
    context::{MailboxContext, ProcessContext},
    imap_actions::{ImapActions, ImapActionsEnd},
    time_limit::{ThreadWait, process_in_time},
};

/// The result of processing a mail.
pub(super) enum ProcessedMail {
    /// The outcome is to be written.
    Over(Box<InboundMailResult>),
    /// Actions on its server are left; then the outcome is to be written.
    ImapActions(Box<PendingImapActions>),
}

/// A mail whose actions on its server are left to do.
pub(super) struct PendingImapActions {
    /// The mail, without its bytes.
    pub job: MailToProcess,
    pub mailbox_context: Arc<MailboxContext>,
    pub token: LeaseToken,
    actions: ImapActions,
    progress: MailProgress,
}

impl PendingImapActions {
    /// Runs the actions, and returns the outcome to write.
    pub(super) async fn run(mut self, context: &ProcessContext) -> InboundMailResult {
        let ended =
            match context.imap_actions.run(&self.mailbox_context.mailbox, &self.job, &self.actions).await {
                Ok(ImapActionsEnd::Done) => Ok(MailVerdict::Routed),
                Ok(ImapActionsEnd::Unknowable) => {
                    let text = "the server gave its mail new UIDs; this one was not marked or moved";
                    Ok(MailVerdict::RoutedBut(text.to_owned()))
                }
                Err(error) => {
                    log_failure(&self.job);
                    self.progress.result.insert("errand".to_owned(), json!(error.message));
                    Err(ProcessFailure::Failed(error.message))
                }
            };
        self.conclude(context, ended)
    }

    /// Postpones the actions for lack of capacity: what was sent is written, and the actions are done later.
    /// This does not count as a try.
    pub(super) fn postpone(self, context: &ProcessContext, wait: Duration) -> InboundMailResult {
        let why = "what is to be done on its server waits for that of other mail".to_owned();
        self.conclude(context, Err(ProcessFailure::Postponed { wait, why }))
    }

    fn conclude(
        self,
        context: &ProcessContext,
        ended: Result<MailVerdict, ProcessFailure>,
    ) -> InboundMailResult {
        let attempts_max = self.mailbox_context.attempts_max();
        conclude(&self.job, self.token, self.progress, ended, attempts_max, context.clock.now())
    }
}

/// Processes a mail; always returns something to write.
pub(super) async fn process_mail(
    context: &Arc<ProcessContext>,
    mailbox_context: &Arc<MailboxContext>,
    job: &Arc<MailToProcess>,
    token: LeaseToken,
    thread_wait: Option<ThreadWait>,
) -> ProcessedMail {
    let attempts_max = mailbox_context.attempts_max();
    let mut span = Span::begin(None, SpanKind::Consumer, "inbound mail");
    span.set("postway.tenant", || job.key.tenant.to_string());
    span.set("postway.mailbox", || job.key.mailbox.to_string());
    span.set("postway.inbound", || job.uid.to_string());
    let (progress, ended) = match why_set_aside(job, attempts_max) {
        Some(why) => (MailProgress::for_job(job), Err(ProcessFailure::Hopeless(why))),
        None => process_in_time(context, mailbox_context, job, thread_wait, span.context()).await,
    };
    if let Err(failure) = &ended {
        span.fail(failure.trace_code());
    }
    drop(span);
    let ended = match ended {
        Ok(MailVerdict::ImapActions(actions)) => {
            let bare = MailToProcess { body: StoredBody::EMPTY, ..MailToProcess::clone(job) };
            let due = PendingImapActions {
                job: bare,
                mailbox_context: mailbox_context.clone(),
                token,
                actions,
                progress,
            };
            // A mail that is processed alone keeps all others waiting. It has survived, and its actions are
            // left to the next time.
            return match job.lost_leases {
                0 => ProcessedMail::ImapActions(Box::new(due)),
                _ => ProcessedMail::Over(due.postpone(context, Duration::ZERO).into()),
            };
        }
        ended => ended,
    };
    if ended.as_ref().is_err_and(|failure| !matches!(failure, ProcessFailure::Postponed { .. })) {
        log_failure(job);
    }
    ProcessedMail::Over(conclude(job, token, progress, ended, attempts_max, context.clock.now()).into())
}

/// Logs that a mail could not be processed. The reason is stored with the mail, because it may name a person.
fn log_failure(job: &MailToProcess) {
    let (tenant, mailbox) = (&job.key.tenant, &job.key.mailbox);
    tracing::warn!(uid = %job.uid, %tenant, %mailbox, tries = job.tries, "a mail could not be processed");
}

/// Why a mail is not processed any more.
fn why_set_aside(job: &MailToProcess, attempts_max: u32) -> Option<String> {
    if job.lost_leases >= LOST_LEASES_MAX {
        return Some(format!(
            "the process died {} times in a row while it was processing this mail, the last time with nothing else in \
             hand; it was set aside: replay it to try again",
            job.lost_leases
        ));
    }
    // Failed tries end earlier: the last of these tries never ended.
    (job.tries >= i64::from(attempts_max))
        .then(|| format!("it was tried {} times, the last time without an end", job.tries))
}
