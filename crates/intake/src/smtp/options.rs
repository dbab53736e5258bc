//! Sending options in the header of a mail.
//!
//! `X-Postway-…` fields choose what the query of `POST /v1/messages/raw` chooses, and are removed from the
//! mail. Unknown ones are removed without an error: a mail may have passed another gateway, and
//! `X-Postway-ID` is its id there.
//!
//! A program that was set up for another service uses that service's fields: `X-PM-Tag`,
//! `X-PM-Message-Stream` and `X-PM-Metadata-…` (Postmark), `Resend-Idempotency-Key`. They apply if our own
//! field is absent.

use postway_mime::{RawError, control_fields};
use postway_trace::{TraceContext, context::TRACEPARENT};

use super::{conversation::SmtpEnvelope, reply::SubmissionReply};
use crate::RawOptions;

/// The options, and the key by which a repeat is recognised.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MailOptions {
    pub(super) raw: RawOptions,
    pub(super) idempotency_key: Option<String>,
    /// The place in a trace, if this process traces.
    pub(super) trace: Option<TraceContext>,
}

impl MailOptions {
    /// Reads the options of a mail with this envelope.
    pub(super) fn for_mail(envelope: &SmtpEnvelope, mail: &[u8]) -> Result<Self, SubmissionReply> {
        let fields = match control_fields(mail) {
            Ok(fields) => fields,
            // The door has a better error for this.
            Err(RawError::Nul { .. } | RawError::HeaderTooLong) => Vec::new(),
            Err(error) => return Err(SubmissionReply::with_text(550, "5.6.0", &error.to_string())),
        };
        let from = envelope.from.as_ref().map_or_else(String::new, |from| from.as_str().to_owned());
        let to = envelope.to.iter().map(|to| to.as_str().to_owned()).collect();
        let mut options =
            Self { raw: RawOptions { from: Some(from), to, ..RawOptions::default() }, ..Self::default() };
        if postway_trace::is_on() {
            let values = fields.iter().filter(|(name, _)| is_traceparent(name));
            options.trace = TraceContext::parse_only(values.map(|(_, value)| value.as_bytes()));
        }
        let (own, of_others): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| name.to_ascii_lowercase().starts_with("x-postway-"));
        for (name, value) in own {
            options.choose(&name, value)?;
        }
        for (name, value) in of_others {
            options.translate(&name.to_ascii_lowercase(), value);
        }
        Ok(options)
    }

    /// Applies another service's field. Its programs expect no refusal for it, so a repeated field is
    /// ignored.
    fn translate(&mut self, name: &str, value: String) {
        if value.is_empty() {
            return;
        }
        if let Some(key) = name.strip_prefix("x-pm-metadata-") {
            self.raw.metadata.entry(key.to_owned()).or_insert(value);
            return;
        }
        match name {
            "x-pm-tag" => self.raw.tags.push(value),
            // Postmark's name for mail outside any stream.
            "x-pm-message-stream" if value.eq_ignore_ascii_case("outbound") => {}
            "x-pm-message-stream" => {
                self.raw.batch.get_or_insert(value);
            }
            "resend-idempotency-key" => {
                self.idempotency_key.get_or_insert(value);
            }
            _ => {}
        }
    }

    fn choose(&mut self, name: &str, value: String) -> Result<(), SubmissionReply> {
        let raw = &mut self.raw;
        let option = match name.to_ascii_lowercase().as_str() {
            "x-postway-client-id" => &mut raw.id,
            "x-postway-account" => &mut raw.account,
            "x-postway-batch" => &mut raw.batch,
            "x-postway-priority" => &mut raw.priority,
            "x-postway-send-at" => &mut raw.send_at,
            "x-postway-expires-at" => &mut raw.expires_at,
            "x-postway-on-doubt" => &mut raw.on_doubt,
            "x-postway-dsn" => &mut raw.dsn_request,
            "x-postway-idempotency-key" => &mut self.idempotency_key,
            "x-postway-tag" => {
                let tags = value.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                raw.tags.extend(tags.map(str::to_owned));
                return Ok(());
            }
            "x-postway-sensitive" => {
                raw.sensitive = match value.to_ascii_lowercase().as_str() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return Err(fault("X-Postway-Sensitive", "must be true or false")),
                };
                return Ok(());
            }
            _ => return Ok(()),
        };
        match option.replace(value) {
            None => Ok(()),
            Some(_) => Err(fault(name, "is there more than once: keep one")),
        }
    }
}

/// Whether a field says where the mail belongs in a trace: with our prefix, or as W3C names it.
fn is_traceparent(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_prefix("x-postway-").unwrap_or(&name) == TRACEPARENT
}

fn fault(name: &str, problem: &str) -> SubmissionReply {
    SubmissionReply::with_text(550, "5.6.0", &format!("{name}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> SmtpEnvelope {
        let to = vec!["a@example.net".parse().unwrap()];
        let from = Some("shop@example.com".parse().unwrap());
        SmtpEnvelope { from, to, smtputf8: false, dsn: Default::default() }
    }

    #[test]
    fn a_mail_chooses_how_it_is_sent() {
        let mail = b"X-Postway-Account: relay\r\nx-postway-batch: news\r\nX-Postway-Priority:\r\n high\r\n\
            X-Postway-Send-At: 2030-01-01T00:00:00Z\r\nX-Postway-Expires-At: 2030-01-02T00:00:00Z\r\nX-Postway-On-Doubt: hold\r\n\
            X-Postway-DSN: NOTIFY=SUCCESS\r\n\
            X-Postway-Tag: a, b\r\nX-Postway-Tag: c\r\nX-Postway-Idempotency-Key: k 1\r\nX-Postway-Client-Id: 7\r\n\
            X-Postway-Sensitive: true\r\nX-Postway-ID: other\r\nFrom: shop@example.com\r\n\r\nX-Postway-Batch: no\r\n";
        let text = |text: &str| Some(text.to_owned());
        let raw = RawOptions {
            id: text("7"),
            account: text("relay"),
            batch: text("news"),
            priority: text("high"),
            send_at: text("2030-01-01T00:00:00Z"),
            expires_at: text("2030-01-02T00:00:00Z"),
            on_doubt: text("hold"),
            dsn_request: text("NOTIFY=SUCCESS"),
            from: text("shop@example.com"),
            to: vec!["a@example.net".to_owned()],
            tags: ["a", "b", "c"].map(str::to_owned).to_vec(),
            sensitive: true,
            ..RawOptions::default()
        };
        let expected = MailOptions { raw, idempotency_key: text("k 1"), trace: None };
        assert_eq!(MailOptions::for_mail(&envelope(), mail), Ok(expected));
    }

    #[test]
    fn words_of_other_services_count_where_ours_are_not_there() {
        let mail = b"X-PM-Tag: welcome\r\nX-PM-Message-Stream: news\r\nx-pm-metadata-Order: 7\r\nX-PM-Metadata-order: 8\r\n\
            X-PM-TrackOpens: true\r\nResend-Idempotency-Key: theirs\r\nResend-Idempotency-Key: again\r\n";
        let options = MailOptions::for_mail(&envelope(), &[&mail[..], b"\r\n"].concat()).unwrap();
        assert_eq!(options.raw.tags, ["welcome"]);
        assert_eq!(options.raw.batch.as_deref(), Some("news"));
        assert_eq!(
            options.raw.metadata.into_iter().collect::<Vec<_>>(),
            [("order".to_owned(), "7".to_owned())]
        );
        assert_eq!(options.idempotency_key.as_deref(), Some("theirs"));
        let ours = b"X-Postway-Batch: own\r\nX-Postway-Idempotency-Key: own\r\n\r\n";
        let options = MailOptions::for_mail(&envelope(), &[&mail[..], ours].concat()).unwrap();
        assert_eq!(
            (options.raw.batch.as_deref(), options.idempotency_key.as_deref()),
            (Some("own"), Some("own"))
        );
        let outbound = MailOptions::for_mail(&envelope(), b"X-PM-Message-Stream: Outbound\r\n\r\n").unwrap();
        assert_eq!(outbound.raw.batch, None);
    }

    #[test]
    fn no_sender_is_no_sender() {
        let envelope = SmtpEnvelope { from: None, ..envelope() };
        let options = MailOptions::for_mail(&envelope, b"From: a@example.com\r\n\r\n").unwrap();
        assert_eq!(options.raw.from.as_deref(), Some(""));
    }

    #[test]
    fn a_choice_that_cannot_be_read_is_refused_by_name() {
        for (header, named) in [
            ("X-Postway-Batch: a\r\nX-Postway-Batch: b", "X-Postway-Batch"),
            ("X-Postway-Sensitive: maybe", "X-Postway-Sensitive"),
        ] {
            let reply =
                MailOptions::for_mail(&envelope(), format!("{header}\r\n\r\n").as_bytes()).unwrap_err();
            assert!(reply.code == 550 && reply.text.starts_with(named), "{reply:?}");
        }
    }
}
