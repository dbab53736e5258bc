//! Forwards a mail through the intake.
//!
//! Each rule forwards a mail once: the idempotency key consists of the mailbox, the digest of the mail and
//! the rule, so that a second try, after a crash or on another node, finds the message of the first. There
//! are three forms: unchanged ([`ForwardForm::Redirect`]), as an attachment of a new mail, or composed anew.
//! A mail that cannot be sent in the wanted form, because servers would refuse it, is sent as an attachment:
//! its form never stops it.

mod compose;

use postway_domain::{
    EmailAddress, Lane, MessageUid, NamedAddress, WatchedMailbox, id::RuleId, rule::ForwardForm,
};
use postway_intake::{
    ComposedForward, Door, ForwardNames, ForwardRequest, Refusal, RequestContext, RequestTrace,
};
use postway_mime::{
    ComposedMail, LOOP_MARK_FIELD, MailDraft,
    forwarded::{ResentFields, compose_around, resend},
    is_mark,
};
use postway_store::record::MailToProcess;
use postway_trace::TraceContext;

use crate::{
    crash::crash_point,
    mail::{ParsedMail, bounded},
    rules::PlannedForward,
};

/// The longest subject of a forwarded mail, in characters.
const SUBJECT_CHARS_MAX: usize = 400;
/// The file name of the attached original.
const ORIGINAL_NAME: &str = "original.eml";

/// A mail to forward, with its mailbox and rule.
pub(crate) struct Forwarding<'a> {
    pub job: &'a MailToProcess,
    pub mailbox: &'a WatchedMailbox,
    pub rule: &'a RuleId,
    pub shape: ForwardShape<'a>,
    /// The span of the mail's processing.
    pub trace: Option<TraceContext>,
}

/// A mail, and the form in which it is forwarded.
pub(crate) struct ForwardShape<'a> {
    pub mail: &'a ParsedMail<'a>,
    pub planned: &'a PlannedForward,
    /// The loop mark of the mailbox.
    pub mark: &'a str,
    /// The number of the reminder, from 1.
    pub reminder: Option<i64>,
}

/// Why a mail was not forwarded.
#[derive(Debug)]
pub(crate) enum ForwardFailure {
    /// The rule cannot forward it, for this reason.
    Unable(String),
    /// It waits until the tenant has an account that sends: the default sandbox would capture it.
    WouldCapture(String),
    /// The intake refused it.
    Refused(Refusal),
}

impl From<Refusal> for ForwardFailure {
    fn from(refusal: Refusal) -> Self {
        match refusal.would_capture() {
            true => Self::WouldCapture(refusal.to_string()),
            false => Self::Refused(refusal),
        }
    }
}

impl Forwarding<'_> {
    /// Accepts the forwarded mail for sending; returns the uid of its message.
    pub(crate) async fn send(&self, door: &Door) -> Result<MessageUid, ForwardFailure> {
        let from = self.from().map_err(ForwardFailure::Unable)?;
        if self.shape.planned.account.is_none() {
            let captures = door.capture_reason(&self.job.key.tenant).await;
            if let Some(why) = captures.map_err(|error| ForwardFailure::Refused(error.into()))? {
                return Err(ForwardFailure::WouldCapture(why.to_owned()));
            }
        }
        let ctx = RequestContext {
            tenant: self.job.key.tenant.clone(),
            request_id: format!("inbound-{}", self.job.uid),
            idempotency_key: Some(self.key()),
            dry_run: false,
            refuses_capture: true,
            any_subject: false,
            spoken_times: false,
            on_doubt: self.shape.planned.on_doubt.or(self.mailbox.settings.on_doubt),
            restrictions: None,
            trace: RequestTrace::Decided(self.trace),
        };
        let request = ForwardRequest {
            to: self.shape.planned.to.clone(),
            account: self.shape.planned.account.clone(),
            subject: self.shape.subject(),
            batch: Some(Lane::batch_of(&self.job.key.mailbox)),
            tags: Vec::new(),
            external_id: None,
            size: self.shape.mail.raw().len(),
            make: Box::new(|given| self.shape.make(&from, given)),
            from: from.clone(),
        };
        crash_point("inbound_before_accept");
        let receipt = door.accept_forward(&ctx, request).await.map_err(ForwardFailure::from)?;
        crash_point("inbound_after_accept");
        Ok(receipt.uid)
    }

    /// The idempotency key of this mail, rule and reminder.
    fn key(&self) -> String {
        let digest: String = self.job.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut key = format!("forward:{}:{digest}:{}", self.job.key.mailbox, self.rule);
        if let Some(nth) = self.shape.reminder {
            key += &format!(":reminder:{nth}");
        }
        key
    }

    /// The sender: the one that the rule names, or else the mailbox, if its user name is an address.
    fn from(&self) -> Result<NamedAddress, String> {
        if let Some(from) = &self.shape.planned.from {
            return Ok(from.clone());
        }
        let username = &self.mailbox.settings.username;
        let address = username.parse::<EmailAddress>().map_err(|_| {
            "the mailbox's user name is no address: say in the rule's forward in whose name mail is sent on (from)".to_owned()
        })?;
        NamedAddress::new(None, address).map_err(|error| error.to_string())
    }
}

impl ForwardShape<'_> {
    fn prefix(&self) -> Option<String> {
        self.reminder.map(|nth| format!("Reminder {nth}: "))
    }

    /// The subject of the forwarded mail.
    fn subject(&self) -> String {
        let original = bounded(&self.mail.subject().unwrap_or_default(), SUBJECT_CHARS_MAX);
        let prefix = self.prefix().unwrap_or_default();
        let is_forwarded = ["fwd:", "fw:"]
            .iter()
            .any(|word| original.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        match self.planned.form {
            ForwardForm::Redirect => format!("{prefix}{original}"),
            ForwardForm::Attachment | ForwardForm::Compose if is_forwarded => format!("{prefix}{original}"),
            ForwardForm::Attachment | ForwardForm::Compose => {
                format!("{prefix}Fwd: {original}").trim_end().to_owned()
            }
        }
    }

    /// Makes the forwarded mail.
    pub(crate) fn make(
        &self,
        from: &NamedAddress,
        given: &ForwardNames<'_>,
    ) -> Result<ComposedForward, String> {
        let made = match self.planned.form {
            ForwardForm::Redirect => self.redirected(from, given).map(|resent| (resent, false)),
            ForwardForm::Compose => compose::composed(self, from, given).map(|composed| (composed, true)),
            ForwardForm::Attachment => None,
        };
        let (mut composed, is_our_own) = match made {
            Some(made) => made,
            None => (self.attached(from, given)?, true),
        };
        composed.bytes.splice(0..0, self.marks(!is_our_own).into_bytes());
        Ok(ComposedForward { composed, is_our_own })
    }

    /// The mail with `Resent-` fields; `None` if some servers would refuse it.
    fn redirected(&self, from: &NamedAddress, given: &ForwardNames<'_>) -> Option<ComposedMail> {
        let prefix = self.prefix();
        let resent = resend(
            self.mail.raw(),
            &ResentFields {
                from,
                to: &self.planned.to,
                message_id: given.message_id,
                uid: given.uid,
                date_unix: given.date_unix,
                subject_prefix: prefix.as_deref(),
            },
        );
        // A header in raw UTF-8 would fail at every relay without SMTPUTF8.
        resent.ok().filter(|composed| !composed.smtputf8)
    }

    /// The mail as an attachment of a new mail.
    fn attached(&self, from: &NamedAddress, given: &ForwardNames<'_>) -> Result<ComposedMail, String> {
        let text = format!("{}\nThe mail is attached.\n", compose::header_block(self.mail));
        let reply_to = compose::reply_to(self.mail);
        let draft = self.draft(from, given, &reply_to, &text);
        let subject = self.subject();
        compose_around(&MailDraft { subject: &subject, ..draft }, self.mail.raw(), ORIGINAL_NAME)
            .map_err(|error| error.to_string())
    }

    fn draft<'d>(
        &'d self,
        from: &'d NamedAddress,
        given: &ForwardNames<'d>,
        reply_to: &'d [NamedAddress],
        text: &'d str,
    ) -> MailDraft<'d> {
        MailDraft {
            from,
            sender: None,
            to: &self.planned.to,
            cc: &[],
            reply_to,
            subject: "",
            text: Some(text),
            html: None,
            alternatives: &[],
            headers: &[],
            attachments: &[],
            message_id: given.message_id,
            uid: given.uid,
            date_unix: given.date_unix,
        }
    }

    /// The fields that mark the mail as forwarded. A redirected mail already has its earlier marks; a new
    /// mail repeats them.
    fn marks(&self, is_resent: bool) -> String {
        let mut fields = format!("{LOOP_MARK_FIELD}: {}\r\n", self.mark);
        if !is_resent {
            let earlier = self.mail.plain(LOOP_MARK_FIELD).filter(|mark| is_mark(mark));
            fields.extend(earlier.map(|mark| format!("{LOOP_MARK_FIELD}: {mark}\r\n")));
        }
        fields
    }
}
