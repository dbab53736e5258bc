//! Parses a proxy from its URL.

use std::str::FromStr;

use secrecy::{SecretString, zeroize::Zeroizing};
use thiserror::Error;
use url::{Host, Url};

use super::{FIELD_BYTES_MAX, OutboundProxy, ProxyProtocol};

const SOCKS_PORT: u16 = 1080;

/// The text is not the URL of a proxy. The error does not repeat it, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the proxy {0}; write socks5://user:password@host:port or http://user:password@host:port")]
pub struct ProxyUrlError(&'static str);

impl OutboundProxy {
    /// A proxy from a URL without password, and the password of its user, if it has one.
    pub fn with_password(url: &str, password: Option<&str>) -> Result<Self, ProxyUrlError> {
        let Some(password) = password else { return url.parse() };
        let mut url = Url::parse(url.trim()).map_err(|_| ProxyUrlError("is not a URL"))?;
        // `Url` encodes all but the sign that begins an encoded octet.
        let escaped = Zeroizing::new(password.replace('%', "%25"));
        url.set_password(Some(&escaped)).map_err(|()| ProxyUrlError("cannot hold a password"))?;
        Zeroizing::new(String::from(url)).parse()
    }
}

impl FromStr for OutboundProxy {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let url = Url::parse(text.trim()).map_err(|_| ProxyUrlError("is not a URL"))?;
        let (kind, port) = match url.scheme() {
            "socks5" | "socks5h" => (ProxyProtocol::Socks5, url.port().unwrap_or(SOCKS_PORT)),
            "http" => (ProxyProtocol::Http, url.port_or_known_default().unwrap_or(80)),
            _ => return Err(ProxyUrlError("is neither socks5 nor http")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(ProxyUrlError("has more than a host and a port"));
        }
        // For other schemes than the web's, `Url` does not parse the host, so it is parsed here.
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(ProxyUrlError("has no host"))?;
        let host = match Host::parse(host).map_err(|_| ProxyUrlError("has a host that cannot be one"))? {
            Host::Domain(name) => name,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (username, password) => {
                let decode = |text| decoded(text).ok_or(ProxyUrlError("has credentials that do not decode"));
                let (username, password) =
                    (decode(username)?, Zeroizing::new(decode(password.unwrap_or(""))?));
                if username.len().max(password.len()) > FIELD_BYTES_MAX {
                    return Err(ProxyUrlError("has credentials of more than 255 bytes"));
                }
                // Neither protocol can carry them: RFC 1929 wants at least one octet, RFC 7617 splits at the
                // colon.
                if username.is_empty() || (kind == ProxyProtocol::Socks5 && password.is_empty()) {
                    return Err(ProxyUrlError("needs both a user name and a password, or neither"));
                }
                if kind == ProxyProtocol::Http && username.contains(':') {
                    return Err(ProxyUrlError("has a user name with a colon, which http cannot carry"));
                }
                Some((username, SecretString::from(password.as_str())))
            }
        };
        Ok(Self { kind, host, port, credentials })
    }
}

/// Decodes percent-encoding; `None` if it is malformed or not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn urls_are_read_and_credentials_are_never_printed() {
        let proxy: OutboundProxy = "socks5h://bob:hunter2@[::1]".parse().unwrap();
        assert_eq!((proxy.kind, proxy.host.as_str(), proxy.port), (ProxyProtocol::Socks5, "::1", 1080));
        assert_eq!(format!("{proxy:?}"), "Proxy(SOCKS5 proxy ::1:1080)");
        let proxy = OutboundProxy::with_password("http://bob@proxy", Some("a:b@c%/ ü")).unwrap();
        let (user, password) = proxy.credentials.as_ref().unwrap();
        assert_eq!((user.as_str(), password.expose_secret()), ("bob", "a:b@c%/ ü"));
        assert!(OutboundProxy::with_password("nonsense", Some("hunter2")).is_err());
        let proxy: OutboundProxy = "http://Proxy.example.org/".parse().unwrap();
        assert_eq!(
            (proxy.kind, proxy.host.as_str(), proxy.port),
            (ProxyProtocol::Http, "proxy.example.org", 80)
        );
        for url in [
            "",
            "proxy:1080",
            "https://proxy",
            "socks4://proxy",
            "socks5://",
            "socks5://proxy/path",
            "http://proxy/?q",
            "socks5://bob@proxy",
            "socks5://:hunter2@proxy",
            "socks5://bob:%zz@proxy",
            "http://b%3Ab:hunter2@proxy",
            "socks5://exa mple",
        ] {
            let error = url.parse::<OutboundProxy>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(format!("socks5://bob:{}@proxy", "x".repeat(256)).parse::<OutboundProxy>().is_err());
    }
}
