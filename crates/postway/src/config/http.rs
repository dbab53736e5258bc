//! `[http]`: the API's listener and its bounds.

use std::net::SocketAddr;

use postway_domain::key::IpNetwork;

use super::layers::ConfigLayers;
use super::network::networks;
use super::{integer_between, listen_address};

/// Default address of the API: this machine only.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8520);
const MIB: u64 = 1024 * 1024;
const CONNECTIONS: usize = 4_096;
/// An eighth of all connections: enough for the pools of an application, and no fewer than eight clients can
/// take them all.
const CONNECTIONS_PER_CLIENT: usize = 512;

/// The API's listener and its bounds.
#[derive(Clone, Debug)]
pub struct HttpSection {
    /// Where the API listens.
    pub listen: SocketAddr,
    /// The largest message, in bytes.
    pub max_message_bytes: usize,
    /// The largest request body, in bytes; never below `max_message_bytes`.
    pub max_request_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections of one client.
    pub max_connections_per_client: usize,
    /// Proxies whose headers about their clients are trusted.
    pub trusted_proxies: Vec<IpNetwork>,
    /// The header by which they name their clients.
    pub forwarded_header: ForwardedHeader,
    /// Proxies of TCP, which must announce the address of their client.
    pub proxy_networks: Vec<IpNetwork>,
    /// Where the API listens under TLS; none: it does not.
    pub tls_listen: Option<SocketAddr>,
    /// Where a listener leads to that address; none: there is none.
    pub redirect_listen: Option<SocketAddr>,
}

/// The header by which proxies name their clients. They write one of these and pass the other one on as it
/// came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`, and `X-Forwarded-Proto` for the scheme.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl HttpSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let size = |text: &str| integer_between(text, 1024, 1024 * MIB).map(|bytes| bytes as usize);
        let listen = layers.take("http.listen", LISTEN, &LISTEN.to_string(), listen_address);
        let message = 10 * MIB as usize;
        let message = layers.take("http.max_message_bytes", message, &message.to_string(), size);
        let request = 40 * MIB as usize;
        let at_least = |text: &str| {
            let bytes = size(text)?;
            match message {
                Some(message) if bytes < message => {
                    Err(format!("must be at least http.max_message_bytes, which is {message}"))
                }
                _ => Ok(bytes),
            }
        };
        // The default grows with a larger message, so that setting one of the two is enough.
        let default = request.max(message.unwrap_or(0));
        let request = layers.take("http.max_request_bytes", default, &default.to_string(), at_least);
        let mut count = |key, default: usize| {
            layers.take(key, default, &default.to_string(), |text| {
                integer_between(text, 1, 100_000).map(|count| count as usize)
            })
        };
        let max_connections = count("http.max_connections", CONNECTIONS);
        let per_client = count("http.max_connections_per_client", CONNECTIONS_PER_CLIENT);
        let trusted_proxies = layers.take("http.trusted_proxies", Vec::new(), "", |text| {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::parse).collect()
        });
        let forwarded_header =
            layers.take("http.forwarded_header", ForwardedHeader::XForwardedFor, "x-forwarded-for", |text| {
                match text.to_ascii_lowercase().as_str() {
                    "x-forwarded-for" => Ok(ForwardedHeader::XForwardedFor),
                    "forwarded" => Ok(ForwardedHeader::Forwarded),
                    _ => Err(format!(
                        "`{text}` must be `x-forwarded-for` or `forwarded`: the one that the proxies write"
                    )),
                }
            });
        let proxy_networks = layers.take("http.proxy_networks", Vec::new(), "", networks);
        let address = |text: &str| match text {
            "off" => Ok(None),
            _ => listen_address(text).map(Some),
        };
        let tls_listen = layers.take_optional("http.tls_listen", address).map(Option::flatten);
        let redirect_listen = layers.take_optional("http.redirect_listen", address).map(Option::flatten);
        if redirect_listen.is_some_and(|listen| listen.is_some()) && tls_listen == Some(None) {
            let problem = "leads to http.tls_listen, which is off: set that address too".to_owned();
            layers.refuse("http.redirect_listen", problem);
        }
        Some(Self {
            listen: listen?,
            max_message_bytes: message?,
            max_request_bytes: request?,
            max_connections: max_connections?,
            max_connections_per_client: per_client?,
            trusted_proxies: trusted_proxies?,
            forwarded_header: forwarded_header?,
            proxy_networks: proxy_networks?,
            tls_listen: tls_listen?,
            redirect_listen: redirect_listen?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(env: &[(&str, &str)]) -> Result<HttpSection, String> {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let loaded = crate::config::load_from(None, env);
        loaded.map(|loaded| loaded.config.http).map_err(|errors| errors.to_string())
    }

    #[test]
    fn tls_and_its_redirect_are_off_until_they_are_given_addresses() {
        let http = read(&[]).unwrap();
        assert!(http.tls_listen.is_none() && http.redirect_listen.is_none());
        assert_eq!(http.forwarded_header, ForwardedHeader::XForwardedFor);
        let http = read(&[
            ("POSTWAY_HTTP_TLS_LISTEN", "0.0.0.0:443"),
            ("POSTWAY_HTTP_REDIRECT_LISTEN", "0.0.0.0:80"),
            ("POSTWAY_HTTP_FORWARDED_HEADER", "Forwarded"),
            ("POSTWAY_HTTP_PROXY_NETWORKS", "10.0.0.7, fd00::/64"),
        ])
        .unwrap();
        assert_eq!(http.tls_listen.unwrap().port(), 443);
        assert_eq!((http.forwarded_header, http.proxy_networks.len()), (ForwardedHeader::Forwarded, 2));
    }

    #[test]
    fn what_does_not_fit_says_so() {
        for (env, named) in [
            (("POSTWAY_HTTP_REDIRECT_LISTEN", "0.0.0.0:80"), "`http.redirect_listen`"),
            (("POSTWAY_HTTP_FORWARDED_HEADER", "x-real-ip"), "`http.forwarded_header`"),
            (("POSTWAY_HTTP_PROXY_NETWORKS", "0.0.0.0/0"), "`http.proxy_networks`"),
            (("POSTWAY_HTTP_TLS_LISTEN", "here"), "`http.tls_listen`"),
        ] {
            let error = read(&[env]).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
