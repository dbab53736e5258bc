//! Calls of Amazon SNS, which brings the events of SES.
//!
//! A message of SNS names its topic, which must be on the hook's list, and is signed. A subscription is
//! confirmed here; a notification has the event of SES as a text.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{Time, hook::HookSettings};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    HookCall, HookRefusal,
    certificate::{SnsCertificates, SnsSignatureVersion},
    proof::check_age,
    split::{self, SplitCall},
};

/// How old a message may be: topics may be set to repeat calls for long.
const AGE_S_MAX: i64 = 2 * 86_400;

/// A message of SNS.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SnsMessage {
    #[serde(rename = "Type")]
    kind: String,
    message_id: String,
    topic_arn: String,
    #[serde(default)]
    subject: Option<String>,
    message: String,
    timestamp: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default, rename = "SubscribeURL")]
    subscribe_url: Option<String>,
    signature_version: String,
    signature: String,
    #[serde(rename = "SigningCertURL")]
    signing_cert_url: String,
}

impl SnsMessage {
    /// The text that is signed: names and values, a line each, in the order of the names.
    fn signed_text(&self) -> String {
        let notification = self.kind == "Notification";
        let fields = [
            ("Message", Some(self.message.as_str())),
            ("MessageId", Some(self.message_id.as_str())),
            ("Subject", self.subject.as_deref().filter(|_| notification)),
            ("SubscribeURL", self.subscribe_url.as_deref().filter(|_| !notification)),
            ("Timestamp", Some(self.timestamp.as_str())),
            ("Token", self.token.as_deref().filter(|_| !notification)),
            ("TopicArn", Some(self.topic_arn.as_str())),
            ("Type", Some(self.kind.as_str())),
        ];
        let present = fields.iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        present.map(|(name, value)| format!("{name}\n{value}\n")).collect()
    }
}

/// Checks a call, confirms a subscription, and returns the event of a notification.
pub(super) async fn read(
    certificates: &SnsCertificates,
    settings: &HookSettings,
    call: &HookCall<'_>,
    now: Time,
) -> Result<SplitCall, HookRefusal> {
    if (call.header)("x-amz-sns-rawdelivery").is_some() {
        return Err(HookRefusal::Forged("raw delivery has no signature: turn it off in the subscription"));
    }
    let message: SnsMessage = split::read(call.body)?;
    if !settings.topics.contains(&message.topic_arn) {
        return Err(HookRefusal::Forged("the topic is not on the hook's list: add its ARN to `topics`"));
    }
    let version = match message.signature_version.as_str() {
        "1" => SnsSignatureVersion::One,
        "2" => SnsSignatureVersion::Two,
        _ => return Err(HookRefusal::Forged("the version of the signature is neither 1 nor 2")),
    };
    let signed = BASE64_STANDARD
        .decode(&message.signature)
        .map_err(|_| HookRefusal::Forged("the signature of SNS is not base64"))?;
    let endpoint = settings.sns_endpoint.as_deref();
    let text = message.signed_text();
    certificates.verify(&message.signing_cert_url, endpoint, version, &text, &signed).await?;
    let at: Time = message
        .timestamp
        .parse()
        .map_err(|_| HookRefusal::Malformed("the time of the message cannot be read".to_owned()))?;
    check_age(at.as_seconds(), AGE_S_MAX, now)?;
    match message.kind.as_str() {
        "Notification" => Ok(event(&message.message)),
        "SubscriptionConfirmation" => {
            let url = message.subscribe_url.as_deref().unwrap_or_default();
            certificates.confirm(url, endpoint).await?;
            tracing::info!(topic = message.topic_arn, "confirmed a subscription of SNS");
            Ok(SplitCall::empty())
        }
        "UnsubscribeConfirmation" => {
            tracing::warn!(
                topic = message.topic_arn,
                "a topic of SNS reports no more: its subscription ended"
            );
            Ok(SplitCall::empty())
        }
        _ => Err(HookRefusal::Malformed("the type of the message is unknown".to_owned())),
    }
}

/// The event of SES. SES says once in a sentence that the topic works; that is no event. Nothing is built to
/// find out: as values, the text would take many times its size.
pub(super) fn event(text: &str) -> SplitCall {
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_object { SplitCall::one(text.as_bytes().to_vec(), text) } else { SplitCall::empty() }
}

#[cfg(test)]
mod tests;
