//! `[http]`: the API's listener and its bounds.

use std::net::SocketAddr;

use postway_domain::key::IpNetwork;

use super::layers::ConfigLayers;
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
        Some(Self {
            listen: listen?,
            max_message_bytes: message?,
            max_request_bytes: request?,
            max_connections: max_connections?,
            max_connections_per_client: per_client?,
            trusted_proxies: trusted_proxies?,
        })
    }
}
