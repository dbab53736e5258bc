//! Networks in settings: `allow_private_targets`, the private networks that webhooks and fetches may reach, and
//! the networks of clients and proxies; and `dns_server`, which checks of domains ask.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use postway_domain::key::IpNetwork;

use super::layers::ConfigLayers;

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPrefix {
    /// An address in the network.
    pub address: IpAddr,
    /// How many leading bits count.
    pub prefix: u8,
}

impl FromStr for NetworkPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("`{text}` is not a network; write one like 10.0.0.0/8 or fd00::/8");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| problem())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= bits).ok_or_else(problem)?,
            None => bits,
        };
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for NetworkPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

pub(super) fn read_allow_private_targets(layers: &mut ConfigLayers) -> Option<Vec<NetworkPrefix>> {
    layers.take("allow_private_targets", Vec::new(), "", |text| {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::parse).collect()
    })
}

pub(super) fn read_dns_server(layers: &mut ConfigLayers) -> Option<Option<SocketAddr>> {
    layers.take_optional("dns_server", |text| {
        text.parse()
            .map_err(|_| format!("`{text}` is not the address of a name server; write one like 192.0.2.1:53"))
    })
}

/// Networks, none of which may contain all addresses.
pub(super) fn networks(text: &str) -> Result<Vec<IpNetwork>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(network).collect()
}

/// One network that does not contain all addresses.
pub(super) fn network(text: &str) -> Result<IpNetwork, String> {
    match text.parse::<IpNetwork>()? {
        everything if everything.is_everything() => {
            Err(format!("`{text}` is everybody: name the networks that you mean, such as 172.18.0.0/16"))
        }
        network => Ok(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_single_addresses_parse_and_others_do_not() {
        assert_eq!("10.0.0.0/8".parse::<NetworkPrefix>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("::1".parse::<NetworkPrefix>().unwrap().to_string(), "::1/128");
        for bad in ["10.0.0.0/33", "example.com", "fd00::/129", "10.0.0.0/-1", "/8"] {
            assert!(bad.parse::<NetworkPrefix>().is_err(), "{bad}");
        }
    }
}
