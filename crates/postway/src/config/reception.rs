//! `[reception]`: mail from other servers, by SMTP, for mailboxes with addresses of their own.

use std::{net::SocketAddr, time::Duration};

use super::layers::ConfigLayers;
use super::{integer_between, listen_address};

const CONNECTIONS: usize = 500;
const CONNECTIONS_PER_CLIENT: usize = 20;
const RECIPIENTS: usize = 100;
const MAIL_BYTES: usize = 25 * 1024 * 1024;
const MAIL_BYTES_MIN: u64 = 64 * 1024;
const MAIL_BYTES_MAX: u64 = 64 * 1024 * 1024;
const MAILS_PER_MINUTE: usize = 600;
const GREETING_DELAY_MAX_MS: u64 = 30_000;

/// The settings of the reception.
#[derive(Clone, Debug)]
pub struct ReceptionSection {
    /// Where it listens; none: it is off.
    pub listen: Option<SocketAddr>,
    /// The largest mail, in bytes.
    pub max_mail_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections of one client.
    pub max_connections_per_client: usize,
    /// Recipients of one mail.
    pub max_recipients: usize,
    /// Recipients that one client may name in a minute.
    pub max_per_minute: u32,
    /// How long a client waits for the greeting.
    pub greeting_delay: Duration,
    /// Whether senders are checked (SPF, DKIM, DMARC).
    pub checks_senders: bool,
    /// Whether mail that fails DMARC is refused if the domain asks for it.
    pub refuses_by_dmarc: bool,
    /// The name server to ask; none: those of this machine.
    pub dns_server: Option<SocketAddr>,
}

impl ReceptionSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let listen = layers.take_optional("reception.listen", |text| match text {
            "off" => Ok(None),
            _ => listen_address(text).map(Some),
        });
        let mut count = |key, default: usize, min: u64, max: u64| {
            layers.take(key, default, &default.to_string(), |text| {
                integer_between(text, min, max).map(|count| count as usize)
            })
        };
        let mail_bytes = count("reception.max_mail_bytes", MAIL_BYTES, MAIL_BYTES_MIN, MAIL_BYTES_MAX);
        let connections = count("reception.max_connections", CONNECTIONS, 1, 100_000);
        let per_client = count("reception.max_connections_per_client", CONNECTIONS_PER_CLIENT, 1, 100_000);
        let recipients = count("reception.max_recipients", RECIPIENTS, 1, 1_000);
        let per_minute = count("reception.max_per_minute", MAILS_PER_MINUTE, 1, 1_000_000);
        let delay_ms = count("reception.greeting_delay_ms", 0, 0, GREETING_DELAY_MAX_MS);
        let senders = layers.take("reception.senders", SenderPolicy::Record, "record", |text| match text {
            "off" => Ok(SenderPolicy::Off),
            "record" => Ok(SenderPolicy::Record),
            "enforce" => Ok(SenderPolicy::Enforce),
            _ => Err("must be off, record or enforce".to_owned()),
        });
        let dns_server = layers.take_optional("reception.dns_server", |text| {
            text.parse::<SocketAddr>()
                .map_err(|_| "must be an address with its port, such as 127.0.0.1:53".to_owned())
        });
        let senders = senders?;
        Some(Self {
            listen: listen?.flatten(),
            max_mail_bytes: mail_bytes?,
            max_connections: connections?,
            max_connections_per_client: per_client?,
            max_recipients: recipients?,
            max_per_minute: u32::try_from(per_minute?).unwrap_or(u32::MAX),
            greeting_delay: Duration::from_millis(delay_ms? as u64),
            checks_senders: senders != SenderPolicy::Off,
            refuses_by_dmarc: senders == SenderPolicy::Enforce,
            dns_server: dns_server?,
        })
    }
}

/// What the check of senders is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderPolicy {
    /// Nothing is checked.
    Off,
    /// Results are written into the mail and its event, and decide nothing.
    Record,
    /// Mail that fails DMARC is refused, if the domain of its author asks for that.
    Enforce,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(env: &[(&str, &str)]) -> Result<ReceptionSection, String> {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let loaded = crate::config::load_from(None, env);
        loaded.map(|loaded| loaded.config.reception).map_err(|errors| errors.to_string())
    }

    #[test]
    fn it_is_off_until_it_has_an_address_and_then_records_and_refuses_nobody() {
        let reception = read(&[]).unwrap();
        assert!(reception.listen.is_none() && reception.checks_senders && !reception.refuses_by_dmarc);
        let given = [
            ("POSTWAY_RECEPTION_LISTEN", "0.0.0.0:25"),
            ("POSTWAY_RECEPTION_SENDERS", "enforce"),
            ("POSTWAY_RECEPTION_GREETING_DELAY_MS", "500"),
            ("POSTWAY_RECEPTION_DNS_SERVER", "127.0.0.1:5353"),
        ];
        let reception = read(&given).unwrap();
        assert!(reception.refuses_by_dmarc && reception.listen.is_some() && reception.dns_server.is_some());
        assert_eq!(reception.greeting_delay, Duration::from_millis(500));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, value, key) in [
            ("POSTWAY_RECEPTION_SENDERS", "maybe", "`reception.senders`"),
            ("POSTWAY_RECEPTION_DNS_SERVER", "ns.example", "`reception.dns_server`"),
            ("POSTWAY_RECEPTION_MAX_MAIL_BYTES", "1", "`reception.max_mail_bytes`"),
            ("POSTWAY_RECEPTION_GREETING_DELAY_MS", "60000", "`reception.greeting_delay_ms`"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
