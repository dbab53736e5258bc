//! Sends one mail through SES, and checks an account.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};
use postway_mime::downgrade::RelayLacks;
use reqwest::Method;
use serde_json::json;

use super::{SesClient, client::SesPayload, judge};
use crate::transport::{
    DeliveryEnd, DeliveryResult, MailEnvelope, RecipientReply, WireGate,
    api_call::{MAIL_BYTES_MAX, UnansweredCall},
    crash_point,
    fitted_mail::FittedMail,
    phase_span::{end_call, phase},
    recipient_list::{INVALID, RecipientBound, choose_recipients, is_address},
};

const SEND: &str = "/v2/email/outbound-emails";
const ACCOUNT: &str = "/v2/email/account";
/// SES has no SMTPUTF8, and takes bodies of eight bits.
const LACKS: RelayLacks = RelayLacks { eight_bit_mime: false, smtputf8: true };
/// The most recipients of one call.
const RECIPIENTS_MAX: usize = 50;

impl SesClient {
    /// Sends one mail. The returned [`DeliveryResult`] says what is known about each recipient and about the
    /// call.
    pub async fn deliver(
        &self,
        envelope: &MailEnvelope<'_>,
        body: &[u8],
        gate: &mut dyn WireGate,
    ) -> DeliveryResult {
        let mut recipients = vec![RecipientReply::NotTried; envelope.recipients.len()];
        let fitted = FittedMail::new(envelope, body, LACKS);
        let (envelope, body, converted) = match &fitted {
            Some(mail) => (mail.envelope(envelope), mail.bytes.as_slice(), mail.converted),
            None => (*envelope, body, &[][..]),
        };
        let envelope = &envelope;
        let end = match check_mail(envelope, body) {
            Err(failure) => DeliveryEnd::NotSent(failure),
            Ok(()) => match choose_recipients(envelope, &recipient_bound(), &mut recipients) {
                named if named.is_empty() => DeliveryEnd::NoRecipients,
                named => self.transact(envelope, &named, body, gate, &recipients).await,
            },
        };
        DeliveryResult { converted, ..DeliveryResult::new(recipients, end) }
    }

    async fn transact(
        &self,
        envelope: &MailEnvelope<'_>,
        named: &[&str],
        body: &[u8],
        gate: &mut dyn WireGate,
        recipients: &[RecipientReply],
    ) -> DeliveryEnd {
        // The key is fetched before the wire commit: a role may answer slowly, and until then nothing is in
        // doubt.
        let key = match self.settings().credentials.key().await {
            Ok(key) => key,
            Err(failure) => return DeliveryEnd::NotSent(failure),
        };
        let call = phase(envelope.trace, "SES call");
        let mut payload = SesPayload::new(self.request(envelope, named, body));
        payload.traceparent = call.context().map(|context| context.to_string());
        if gate.commit(recipients).await.is_err() {
            return DeliveryEnd::GateRefused;
        }
        crash_point!("ses_after_gate");
        let answer = self.call(Method::POST, SEND, Some((payload, gate)), &key).await;
        end_call(call, answer.as_ref().map(|answer| answer.status));
        crash_point!("ses_after_answer");
        match answer {
            Ok(answer) => judge::judge_answer(&answer, envelope),
            Err(UnansweredCall::Refused) => DeliveryEnd::GateRefused,
            Err(UnansweredCall::NotWritten(failure)) => DeliveryEnd::NotSent(failure),
            Err(UnansweredCall::Unknown(failure)) => DeliveryEnd::InDoubt(failure),
        }
    }

    /// The document that asks for this mail to be sent.
    fn request(&self, envelope: &MailEnvelope<'_>, named: &[&str], body: &[u8]) -> String {
        let mut rest = json!({"Destination": {"ToAddresses": named}});
        if !envelope.sender.is_empty() {
            rest["FeedbackForwardingEmailAddress"] = json!(envelope.sender);
        }
        if let Some(name) = &self.settings().configuration_set {
            rest["ConfigurationSetName"] = json!(name);
        }
        let rest = rest.to_string();
        // The mail is encoded straight into the document; as a JSON value it would be copied twice more.
        let mut request = String::with_capacity(body.len().div_ceil(3) * 4 + rest.len() + 64);
        request.push_str(r#"{"Content":{"Raw":{"Data":""#);
        BASE64_STANDARD.encode_string(body, &mut request);
        request.push_str(r#""}},"#);
        request.push_str(rest.trim_start_matches('{'));
        request
    }

    /// Asks SES whether this account may send: connection, TLS, key, and that sending is not paused. Sends
    /// nothing.
    pub async fn check(&self) -> Result<(), SendFailure> {
        let key = self.settings().credentials.key().await?;
        let answer =
            self.call(Method::GET, ACCOUNT, None, &key).await.map_err(|unanswered| match unanswered {
                UnansweredCall::NotWritten(failure) | UnansweredCall::Unknown(failure) => failure,
                UnansweredCall::Refused => unreachable!("without a body no gate is asked"),
            })?;
        if answer.is_success() {
            let document = answer.document.as_ref();
            return match document.and_then(|document| document.get("SendingEnabled")?.as_bool()) {
                Some(false) => Err(sending_paused(answer.text("EnforcementStatus"))),
                Some(true) => Ok(()),
                None => Err(no_service("its answer to GetAccount says nothing about sending")),
            };
        }
        match answer.error.as_deref() {
            // A key that may send need not be allowed to call GetAccount; it was valid.
            Some("AccessDeniedException" | "AccessDenied") if answer.message.contains("ses:GetAccount") => {
                Ok(())
            }
            // A substitute for SES that lacks this call, but answers in the same form.
            Some("UnknownOperationException" | "NotImplemented" | "NotImplementedException") => Ok(()),
            None if answer.status == 404 => {
                Err(no_service("it does not know GetAccount; send a test mail instead"))
            }
            _ => Err(judge::failure(&answer, &NOBODY)),
        }
    }
}

fn recipient_bound() -> RecipientBound {
    let message = format!("SES takes {RECIPIENTS_MAX} recipients per call");
    RecipientBound { max: RECIPIENTS_MAX, code: "SES_TOO_MANY_RECIPIENTS", message }
}

/// The envelope of a call that sends nothing.
const NOBODY: MailEnvelope<'_> = MailEnvelope {
    sender: "",
    recipients: &[],
    size: 0,
    eight_bit: false,
    smtputf8: false,
    dsn: None,
    trace: None,
};

fn sending_paused(enforcement: Option<&str>) -> SendFailure {
    let status = enforcement.unwrap_or("unknown");
    let message = format!("sending is switched off for this AWS account (enforcement status: {status})");
    SendFailure::new(
        "SES_ACCOUNT_SENDING_PAUSED",
        FailureCategory::AccountSuspended,
        FailurePhase::Request,
        FailureSeverity::Account,
        message,
    )
}

fn no_service(reason: &str) -> SendFailure {
    let message = format!("the endpoint does not answer as SES does: {reason}");
    SendFailure::new(
        "SES_ENDPOINT_INVALID",
        FailureCategory::Configuration,
        FailurePhase::Request,
        FailureSeverity::Account,
        message,
    )
}

/// Refuses mail that SES is known not to accept.
fn check_mail(envelope: &MailEnvelope<'_>, body: &[u8]) -> Result<(), SendFailure> {
    let refuse = |code: &'static str, category, message: String| {
        Err(SendFailure::new(code, category, FailurePhase::Compose, FailureSeverity::Permanent, message))
    };
    let addresses = envelope.recipients.iter().chain([&envelope.sender]);
    if envelope.smtputf8 || addresses.into_iter().any(|address| !address.is_ascii()) {
        let message = "SES has no SMTPUTF8, which this mail's addresses or headers need";
        return refuse("smtputf8_unsupported", FailureCategory::Smtputf8Unsupported, message.to_owned());
    }
    if body.len() > MAIL_BYTES_MAX {
        let message = format!("the mail has {} bytes, SES takes {MAIL_BYTES_MAX}", body.len());
        return refuse("message_too_large", FailureCategory::MessageTooLarge, message);
    }
    if !envelope.sender.is_empty() && !is_address(envelope.sender) {
        return refuse("address_invalid", FailureCategory::SenderRejected, INVALID.to_owned());
    }
    Ok(())
}
