//! `[smtp]`: our name towards relays, and the submission listener.

use std::net::SocketAddr;
use std::path::PathBuf;

use postway_intake::smtp::CertificateFiles;

use super::layers::Layers;
use super::{integer_between, listen_address};

const CONNECTIONS: usize = 1_000;
const CONNECTIONS_PER_CLIENT: usize = 100;
/// What the door takes, too.
const RECIPIENTS: usize = 1_000;

/// What concerns SMTP on both sides.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// Where the submission listener listens; none: it is off.
    pub listen: Option<SocketAddr>,
    /// Where it listens under TLS from the first byte; none: it is off.
    pub tls_listen: Option<SocketAddr>,
    /// Its certificate and key; none: no TLS.
    pub certificate: Option<CertificateFiles>,
    /// Connections at once.
    pub max_connections: usize,
    /// Of them, those of one client.
    pub max_connections_per_client: usize,
    /// Recipients of one mail.
    pub max_recipients: usize,
    /// The name given in EHLO, and in the listener's greeting.
    pub ehlo_name: String,
}

impl Smtp {
    pub(super) fn read(layers: &mut Layers) -> Option<Self> {
        let address = |text: &str| match text {
            "off" => Ok(None),
            _ => listen_address(text).map(Some),
        };
        let listen = layers.take_optional("smtp.listen", address).map(Option::flatten);
        let tls_listen = layers.take_optional("smtp.tls_listen", address).map(Option::flatten);
        let file = |text: &str| Ok(PathBuf::from(text));
        let certificate_file = layers.take_optional("smtp.tls_certificate_file", file);
        let key_file = layers.take_optional("smtp.tls_key_file", file);
        let certificate = read_certificate(layers, certificate_file?, key_file?);
        let mut count = |key, default: usize, max: u64| {
            layers.take(key, default, &default.to_string(), |text| {
                integer_between(text, 1, max).map(|count| count as usize)
            })
        };
        let max_connections = count("smtp.max_connections", CONNECTIONS, 100_000);
        let per_client = count("smtp.max_connections_per_client", CONNECTIONS_PER_CLIENT, 100_000);
        let max_recipients = count("smtp.max_recipients", RECIPIENTS, RECIPIENTS as u64);
        let host = host_name();
        let ehlo_name = layers.take("smtp.ehlo_name", host.clone(), &host, |text| match is_host(text) {
            true => Ok(text.to_owned()),
            false => {
                Err("must be a host name or an address literal, such as mail.example.com or [192.0.2.1]"
                    .into())
            }
        });
        let (listen, tls_listen, certificate) = (listen?, tls_listen?, certificate?);
        if tls_listen.is_some() && certificate.is_none() {
            let problem = "needs smtp.tls_certificate_file and smtp.tls_key_file: set both, or leave it off";
            layers.refuse("smtp.tls_listen", problem.to_owned());
        }
        if certificate.is_none() && listen.is_some_and(|listen| !listen.ip().is_loopback()) {
            let problem = "needs smtp.tls_certificate_file and smtp.tls_key_file, for without TLS nobody beyond this \
                           machine can log in: set both, or listen on 127.0.0.1";
            layers.refuse("smtp.listen", problem.to_owned());
        }
        Some(Self {
            listen,
            tls_listen,
            certificate,
            max_connections: max_connections?,
            max_connections_per_client: per_client?,
            max_recipients: max_recipients?,
            ehlo_name: ehlo_name?,
        })
    }
}

fn read_certificate(
    layers: &mut Layers,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Option<Option<CertificateFiles>> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Some(Some(CertificateFiles { certificate, key })),
        (None, None) => Some(None),
        (Some(_), None) => {
            layers.refuse("smtp.tls_certificate_file", "needs smtp.tls_key_file: set both".to_owned());
            None
        }
        (None, Some(_)) => {
            layers.refuse("smtp.tls_key_file", "needs smtp.tls_certificate_file: set both".to_owned());
            None
        }
    }
}

fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(allowed)
}

/// This machine's name as the system has it; `localhost` where it has none that SMTP could carry.
fn host_name() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|name| name.trim().to_owned())
        .find(|name| is_host(name))
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(env: &[(&str, &str)]) -> Result<Smtp, String> {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let loaded = crate::config::load_from(None, env);
        loaded.map(|loaded| loaded.config.smtp).map_err(|errors| errors.to_string())
    }

    const FILES: [(&str, &str); 2] =
        [("POSTWAY_SMTP_TLS_CERTIFICATE_FILE", "/c.pem"), ("POSTWAY_SMTP_TLS_KEY_FILE", "/k.pem")];

    #[test]
    fn the_listener_is_off_until_it_is_given_an_address() {
        let smtp = read(&[]).unwrap();
        assert!(smtp.listen.is_none() && smtp.tls_listen.is_none() && smtp.certificate.is_none());
        assert_eq!(
            (smtp.max_connections, smtp.max_connections_per_client, smtp.max_recipients),
            (1_000, 100, 1_000)
        );
        let addresses = [("POSTWAY_SMTP_LISTEN", "0.0.0.0:587"), ("POSTWAY_SMTP_TLS_LISTEN", "0.0.0.0:465")];
        let smtp = read(&[addresses, FILES].concat()).unwrap();
        assert_eq!(smtp.certificate, Some(CertificateFiles::new("/c.pem", "/k.pem")));
        assert!(read(&[("POSTWAY_SMTP_LISTEN", "127.0.0.1:2525")]).is_ok());
    }

    #[test]
    fn what_needs_a_certificate_says_so() {
        for (env, named) in [
            (&[("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:465")][..], "`smtp.tls_listen`"),
            (&[("POSTWAY_SMTP_LISTEN", "0.0.0.0:587")], "`smtp.listen`"),
            (&FILES[..1], "`smtp.tls_certificate_file`"),
            (&FILES[1..], "`smtp.tls_key_file`"),
            (&[("POSTWAY_SMTP_MAX_RECIPIENTS", "1001")], "`smtp.max_recipients`"),
            (&[("POSTWAY_SMTP_LISTEN", "here")], "`smtp.listen`"),
        ] {
            let error = read(env).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
