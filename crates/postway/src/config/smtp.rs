//! `[smtp]`: our name towards relays, and the submission listener.

use std::net::SocketAddr;
use std::path::PathBuf;

use postway_domain::key::IpNetwork;
use postway_intake::smtp::{CertificateName, KnownCertificate, OpenNetwork};
use postway_net::listen::{CertificateFiles, CertificateFingerprint};

use super::layers::ConfigLayers;
use super::network::{network, networks};
use super::tls::read_certificate_files;
use super::{integer_between, listen_address};

const CONNECTIONS: usize = 1_000;
const CONNECTIONS_PER_CLIENT: usize = 100;
/// The default number of recipients of a mail, as in the HTTP API.
const RECIPIENTS: usize = 1_000;

/// The SMTP settings of both sides, sending and receiving.
#[derive(Clone, Debug)]
pub struct SmtpSection {
    /// Where the submission listener listens; none: it is off.
    pub listen: Option<SocketAddr>,
    /// Where it listens under TLS from the first byte; none: it is off.
    pub tls_listen: Option<SocketAddr>,
    /// Its certificate and key: its own, otherwise those of all listeners.
    pub certificate: Option<CertificateFiles>,
    /// Whether it needs a certificate and none is configured, so that one is made.
    pub makes_certificate: bool,
    /// Networks from which a key may be shown without TLS.
    pub plaintext_networks: Vec<IpNetwork>,
    /// Networks from which mail is taken without a key.
    pub open_networks: Vec<OpenNetwork>,
    /// Proxies, which must announce the address of their client.
    pub proxy_networks: Vec<IpNetwork>,
    /// Servers that may name their client by XCLIENT.
    pub xclient_networks: Vec<IpNetwork>,
    /// Certificates of clients that need no key.
    pub client_certificates: Vec<KnownCertificate>,
    /// The file with the authorities whose certificates are known by name.
    pub client_ca_file: Option<PathBuf>,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections of one client.
    pub max_connections_per_client: usize,
    /// Recipients of one mail.
    pub max_recipients: usize,
    /// The name given in EHLO, and in the listener's greeting.
    pub ehlo_name: String,
}

impl SmtpSection {
    pub(super) fn read(layers: &mut ConfigLayers, shared: Option<&CertificateFiles>) -> Option<Self> {
        let address = |text: &str| match text {
            "off" => Ok(None),
            _ => listen_address(text).map(Some),
        };
        let listen = layers.take_optional("smtp.listen", address).map(Option::flatten);
        let tls_listen = layers.take_optional("smtp.tls_listen", address).map(Option::flatten);
        let own = read_certificate_files(layers, "smtp.tls_certificate_file", "smtp.tls_key_file");
        let certificate = own.map(|own| own.or_else(|| shared.cloned()));
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
        let plaintext_networks = layers.take("smtp.plaintext_networks", Vec::new(), "", networks);
        let open_networks = layers.take("smtp.open_networks", Vec::new(), "", open_networks);
        let proxy_networks = layers.take("smtp.proxy_networks", Vec::new(), "", networks);
        let xclient_networks = layers.take("smtp.xclient_networks", Vec::new(), "", networks);
        let client_certificates = layers.take("smtp.client_certificates", Vec::new(), "", known_certificates);
        let client_ca_file = layers.take_optional("smtp.client_ca_file", |text| Ok(PathBuf::from(text)));
        let is_named = |known: &KnownCertificate| matches!(known.certificate, CertificateName::Name(_));
        if client_ca_file == Some(None) && client_certificates.iter().flatten().any(is_named) {
            let why = "names a certificate by san:, which needs the authority that issued it: set smtp.client_ca_file";
            layers.refuse("smtp.client_certificates", why.to_owned());
        }
        let (listen, tls_listen, certificate) = (listen?, tls_listen?, certificate?);
        let is_far = listen.is_some_and(|listen| !listen.ip().is_loopback());
        let makes_certificate = certificate.is_none() && (is_far || tls_listen.is_some());
        if makes_certificate {
            layers.warnings.push(
                "smtp has no certificate (tls.certificate_file): it makes one of its own, which clients trust only if \
                 they are configured to"
                    .to_owned(),
            );
        }
        let plain = plaintext_networks.iter().flatten().map(|network| ("smtp.plaintext_networks", network));
        let open = open_networks.iter().flatten().map(|open| ("smtp.open_networks", &open.network));
        for (key, network) in plain.chain(open).filter(|(_, network)| !network.is_private()) {
            layers
                .warnings
                .push(format!("{key}: {network} is on the public internet; name private networks only"));
        }
        Some(Self {
            listen,
            tls_listen,
            certificate,
            makes_certificate,
            plaintext_networks: plaintext_networks?,
            open_networks: open_networks?,
            proxy_networks: proxy_networks?,
            xclient_networks: xclient_networks?,
            client_certificates: client_certificates?,
            client_ca_file: client_ca_file?,
            max_connections: max_connections?,
            max_connections_per_client: per_client?,
            max_recipients: max_recipients?,
            ehlo_name: ehlo_name?,
        })
    }
}

/// Networks with the tenant whose mail comes from them: `172.18.0.0/16=default`,
/// `172.18.0.0/16=default/relay-1`.
fn open_networks(text: &str) -> Result<Vec<OpenNetwork>, String> {
    let open = |item: &str| {
        let form = || format!("`{item}` must be NETWORK=TENANT or NETWORK=TENANT/ACCOUNT");
        let (from, whose) = item.split_once('=').ok_or_else(form)?;
        let (tenant, account) = match whose.split_once('/') {
            Some((tenant, account)) => (tenant, Some(account)),
            None => (whose, None),
        };
        Ok(OpenNetwork {
            network: network(from.trim())?,
            tenant: tenant.trim().parse().map_err(|_| form())?,
            account: account.map(|account| account.trim().parse().map_err(|_| form())).transpose()?,
        })
    };
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(open).collect()
}

/// Certificates with the tenant whose mail comes from their clients: `sha256:AB12…=default`,
/// `san:app.example.com=shop/relay-1`.
fn known_certificates(text: &str) -> Result<Vec<KnownCertificate>, String> {
    let known = |item: &str| {
        let form = || {
            format!(
                "`{item}` must be sha256:FINGERPRINT=TENANT or san:HOST=TENANT, each with /ACCOUNT if you like"
            )
        };
        let (whom, whose) = item.split_once('=').ok_or_else(form)?;
        let (tenant, account) = match whose.split_once('/') {
            Some((tenant, account)) => (tenant, Some(account)),
            None => (whose, None),
        };
        let certificate = match whom.trim().split_once(':').ok_or_else(form)? {
            ("sha256", digits) => CertificateName::Fingerprint(fingerprint(digits).ok_or_else(form)?),
            ("san", name) if is_host(name) => CertificateName::Name(name.to_owned()),
            _ => return Err(form()),
        };
        Ok(KnownCertificate {
            certificate,
            tenant: tenant.trim().parse().map_err(|_| form())?,
            account: account.map(|account| account.trim().parse().map_err(|_| form())).transpose()?,
        })
    };
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(known).collect()
}

/// 32 octets in hexadecimal, with or without colons, as `openssl x509 -fingerprint -sha256` prints them.
fn fingerprint(text: &str) -> Option<CertificateFingerprint> {
    let digits: Vec<char> = text.chars().filter(|character| *character != ':').collect();
    let mut octets = CertificateFingerprint::default();
    if digits.len() != octets.len() * 2 {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(digits.chunks(2)) {
        *octet = u8::try_from(pair[0].to_digit(16)? * 16 + pair[1].to_digit(16)?).ok()?;
    }
    Some(octets)
}

fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(allowed)
}

/// This machine's name as the system has it; `localhost` if it has none that is valid in SMTP.
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

    fn read(env: &[(&str, &str)]) -> Result<SmtpSection, String> {
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
        let shared = [("POSTWAY_TLS_CERTIFICATE_FILE", "/s.pem"), ("POSTWAY_TLS_KEY_FILE", "/t.pem")];
        assert_eq!(read(&shared).unwrap().certificate, Some(CertificateFiles::new("/s.pem", "/t.pem")));
        assert_eq!(
            read(&[shared, FILES].concat()).unwrap().certificate,
            Some(CertificateFiles::new("/c.pem", "/k.pem")),
            "its own come first"
        );
        assert!(read(&[("POSTWAY_SMTP_LISTEN", "127.0.0.1:2525")]).is_ok());
    }

    #[test]
    fn what_needs_a_certificate_makes_one_where_none_is_given() {
        let makes = |env: &[(&str, &str)]| read(env).unwrap().makes_certificate;
        assert!(makes(&[("POSTWAY_SMTP_TLS_LISTEN", "127.0.0.1:465")]));
        assert!(makes(&[("POSTWAY_SMTP_LISTEN", "0.0.0.0:587")]));
        assert!(!makes(&[("POSTWAY_SMTP_LISTEN", "127.0.0.1:2525")]));
        assert!(!makes(&[&[("POSTWAY_SMTP_LISTEN", "0.0.0.0:587")], &FILES[..]].concat()));
        assert!(!makes(&[]));
    }

    #[test]
    fn networks_are_named_and_never_everybody() {
        let smtp = read(&[
            ("POSTWAY_SMTP_PLAINTEXT_NETWORKS", "172.18.0.0/16, fd00::/8"),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "172.18.5.0/24=default, 10.1.0.0/16 = shop/relay-1"),
            ("POSTWAY_SMTP_PROXY_NETWORKS", "10.0.0.7"),
        ])
        .unwrap();
        assert_eq!((smtp.plaintext_networks.len(), smtp.proxy_networks.len()), (2, 1));
        let open = |network: &str, tenant: &str, account: Option<&str>| OpenNetwork {
            network: network.parse().unwrap(),
            tenant: tenant.parse().unwrap(),
            account: account.map(|account| account.parse().unwrap()),
        };
        let expected = [open("172.18.5.0/24", "default", None), open("10.1.0.0/16", "shop", Some("relay-1"))];
        assert_eq!(smtp.open_networks, expected);
        for (name, value) in [
            ("POSTWAY_SMTP_PLAINTEXT_NETWORKS", "0.0.0.0/0"),
            ("POSTWAY_SMTP_PLAINTEXT_NETWORKS", "everywhere"),
            ("POSTWAY_SMTP_PROXY_NETWORKS", "::/0"),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "0.0.0.0/0=default"),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "10.0.0.0/8"),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "10.0.0.0/8="),
            ("POSTWAY_SMTP_OPEN_NETWORKS", "10.0.0.0/8=default/"),
        ] {
            assert!(read(&[(name, value)]).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn certificates_of_clients_are_named_by_fingerprint_or_by_name() {
        let hex = "AB:".repeat(31) + "0f";
        let (by_digest, by_name) = (format!("sha256:{hex}=default"), "san:app.example.com = shop/relay-1");
        let both = format!("{by_digest}, {by_name}");
        let env =
            [("POSTWAY_SMTP_CLIENT_CERTIFICATES", both.as_str()), ("POSTWAY_SMTP_CLIENT_CA_FILE", "/ca.pem")];
        let smtp = read(&env).unwrap();
        let mut octets = [0xab; 32];
        octets[31] = 0x0f;
        assert_eq!(smtp.client_certificates[0].certificate, CertificateName::Fingerprint(octets));
        assert_eq!(
            smtp.client_certificates[1].certificate,
            CertificateName::Name("app.example.com".to_owned())
        );
        assert_eq!(smtp.client_certificates[1].account, Some("relay-1".parse().unwrap()));
        for wrong in
            [by_name, "sha256:ab=default", "md5:ab=default", "sha256:=default", "san:a b=default", "default"]
        {
            let error = read(&[("POSTWAY_SMTP_CLIENT_CERTIFICATES", wrong)]).unwrap_err();
            assert!(error.starts_with("`smtp.client_certificates`"), "{error}");
        }
    }

    #[test]
    fn a_public_network_is_warned_of() {
        let warnings = |value: &str| {
            let env = [("POSTWAY_SMTP_OPEN_NETWORKS".into(), value.into())];
            crate::config::load_from(None, env).unwrap().warnings
        };
        assert!(warnings("172.18.0.0/16=default").is_empty());
        let warned = warnings("203.0.113.0/24=default");
        assert!(
            warned.len() == 1 && warned[0].starts_with("smtp.open_networks: 203.0.113.0/24"),
            "{warned:?}"
        );
    }

    #[test]
    fn what_is_half_given_says_so() {
        for (env, named) in [
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
