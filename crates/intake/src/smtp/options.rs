//! What a mail's own header says about how it is to be sent.
//!
//! `X-Postway-…` fields choose what the query of `POST /v1/messages/raw` chooses, and none of them leaves with the mail.
//! Fields that mean nothing here are dropped without a word: a mail may have been through another gateway, and
//! `X-Postway-ID` is what that one called it.

use postway_mime::{RawError, own_fields};

use super::{conversation::Envelope, reply::Reply};
use crate::RawOptions;

/// What was chosen, and the key by which a repeat is recognised.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) raw: RawOptions,
    pub(super) idempotency_key: Option<String>,
}

impl Options {
    /// Those of a mail with this envelope.
    pub(super) fn of(envelope: &Envelope, mail: &[u8]) -> Result<Self, Reply> {
        let fields = match own_fields(mail) {
            Ok(fields) => fields,
            // The door says it better.
            Err(RawError::NoHeader | RawError::Malformed { .. } | RawError::HeaderTooLong) => Vec::new(),
            Err(error) => return Err(Reply::saying(550, "5.6.0", &error.to_string())),
        };
        let from = envelope.from.as_ref().map_or_else(String::new, |from| from.as_str().to_owned());
        let to = envelope.to.iter().map(|to| to.as_str().to_owned()).collect();
        let mut options =
            Self { raw: RawOptions { from: Some(from), to, ..RawOptions::default() }, idempotency_key: None };
        for (name, value) in fields {
            options.choose(&name, value)?;
        }
        Ok(options)
    }

    fn choose(&mut self, name: &str, value: String) -> Result<(), Reply> {
        let raw = &mut self.raw;
        let option = match name.to_ascii_lowercase().as_str() {
            "x-postway-client-id" => &mut raw.id,
            "x-postway-account" => &mut raw.account,
            "x-postway-batch" => &mut raw.batch,
            "x-postway-priority" => &mut raw.priority,
            "x-postway-send-at" => &mut raw.send_at,
            "x-postway-expires-at" => &mut raw.expires_at,
            "x-postway-on-doubt" => &mut raw.on_doubt,
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

fn fault(name: &str, problem: &str) -> Reply {
    Reply::saying(550, "5.6.0", &format!("{name}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        let to = vec!["a@example.net".parse().unwrap()];
        let from = Some("shop@example.com".parse().unwrap());
        Envelope { from, to, smtputf8: false, dsn: Default::default() }
    }

    #[test]
    fn a_mail_chooses_how_it_is_sent() {
        let mail = b"X-Postway-Account: relay\r\nx-postway-batch: news\r\nX-Postway-Priority:\r\n high\r\n\
            X-Postway-Send-At: 2030-01-01T00:00:00Z\r\nX-Postway-Expires-At: 2030-01-02T00:00:00Z\r\nX-Postway-On-Doubt: hold\r\n\
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
            from: text("shop@example.com"),
            to: vec!["a@example.net".to_owned()],
            tags: ["a", "b", "c"].map(str::to_owned).to_vec(),
            sensitive: true,
            dsn: None,
        };
        let expected = Options { raw, idempotency_key: text("k 1") };
        assert_eq!(Options::of(&envelope(), mail), Ok(expected));
    }

    #[test]
    fn no_sender_is_no_sender() {
        let envelope = Envelope { from: None, ..envelope() };
        let options = Options::of(&envelope, b"From: a@example.com\r\n\r\n").unwrap();
        assert_eq!(options.raw.from.as_deref(), Some(""));
    }

    #[test]
    fn a_choice_that_cannot_be_read_is_refused_by_name() {
        for (header, named) in [
            ("X-Postway-Batch: a\r\nX-Postway-Batch: b", "X-Postway-Batch"),
            ("X-Postway-Sensitive: maybe", "X-Postway-Sensitive"),
        ] {
            let reply = Options::of(&envelope(), format!("{header}\r\n\r\n").as_bytes()).unwrap_err();
            assert!(reply.code == 550 && reply.text.starts_with(named), "{reply:?}");
        }
    }
}
