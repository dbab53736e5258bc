//! API keys: the credentials of a tenant's programs.
//!
//! A key is long and random, so a plain digest protects it at rest. It is shown once and never stored.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::{
    address::pattern::AddressPattern,
    identity::{id::TenantId, scram::ScramVerifier},
    time::Time,
};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Hand over mail, and cancel or retry it.
    Send,
    /// Read messages, events and counts; and bodies, unless the tenant says that this is a right of its own.
    Read,
    /// Change accounts, batches, suppressions, webhooks.
    Manage,
    /// Read bodies where the tenant says that this is a right of its own.
    #[serde(rename = "read:content")]
    ReadContent,
}

impl KeyScope {
    /// Every value.
    pub const ALL: [KeyScope; 4] = [KeyScope::Send, KeyScope::Read, KeyScope::Manage, KeyScope::ReadContent];
    /// Those of a key that names none.
    pub const DEFAULT: [KeyScope; 3] = [KeyScope::Send, KeyScope::Read, KeyScope::Manage];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyScope::Send => "send",
            KeyScope::Read => "read",
            KeyScope::Manage => "manage",
            KeyScope::ReadContent => "read:content",
        }
    }
}

/// A network from which a key may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpNetwork {
    address: IpAddr,
    bits: u8,
}

/// Networks outside the public internet.
const PRIVATE: [IpNetwork; 9] = [
    IpNetwork::v4([10, 0, 0, 0], 8),
    IpNetwork::v4([172, 16, 0, 0], 12),
    IpNetwork::v4([192, 168, 0, 0], 16),
    IpNetwork::v4([127, 0, 0, 0], 8),
    IpNetwork::v4([169, 254, 0, 0], 16),
    IpNetwork::v4([100, 64, 0, 0], 10),
    IpNetwork::v6(0xFC00, 7),
    IpNetwork::v6(0xFE80, 10),
    IpNetwork { address: IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), bits: 128 },
];

impl IpNetwork {
    const fn v4(octets: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self { address: IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(first: u16, bits: u8) -> Self {
        Self { address: IpAddr::V6(std::net::Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0)), bits }
    }

    /// Whether it contains every address.
    pub fn is_everything(&self) -> bool {
        self.bits == 0
    }

    /// Whether it contains no address of the public internet.
    pub fn is_private(&self) -> bool {
        PRIVATE.iter().any(|private| private.bits <= self.bits && private.contains(self.address))
    }

    /// Whether it contains an address.
    pub fn contains(&self, other: IpAddr) -> bool {
        let prefix = |address: u128, width: u8| {
            let shift = u32::from(width - self.bits);
            address.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                prefix(u32::from(own).into(), 32) == prefix(u32::from(other).into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => prefix(own.into(), 128) == prefix(other.into(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for IpNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither an IP address nor a network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        if bits > width { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Serialize for IpNetwork {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IpNetwork {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The digest of a key: what is stored and looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// The digest of a presented key.
    pub fn of(key: &[u8]) -> Self {
        let mut digest = [0; 32];
        digest.copy_from_slice(digest::digest(&digest::SHA256, key).as_ref());
        Self(digest)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

/// The senders and recipients that a key is restricted to. An empty list restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyRestrictions {
    /// The allowed senders, in addition to the tenant's restriction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<AddressPattern>,
    /// The allowed recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<AddressPattern>,
}

impl KeyRestrictions {
    /// Whether nothing is restricted.
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty() && self.recipients.is_empty()
    }
}

/// An API key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The id, which is the public part of the key.
    pub id: String,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// A name for people.
    pub name: String,
    /// The digest of the complete key.
    pub digest: KeyDigest,
    /// What it may do.
    pub scopes: Vec<KeyScope>,
    /// The networks from which it may be used; any if empty.
    pub networks: Vec<IpNetwork>,
    /// The senders and recipients that it is restricted to.
    pub restrictions: Option<Arc<KeyRestrictions>>,
    /// When it was created.
    pub created_at: Time,
    /// When it expires.
    pub expires_at: Option<Time>,
    /// Roughly when it was last used.
    pub last_used_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
    /// The SCRAM verifier; absent for keys of older versions.
    pub scram: Option<ScramVerifier>,
    /// Who made it, as the audit log names them; absent for keys of older versions.
    pub created_by: Option<String>,
}

impl ApiKey {
    /// The prefix of every key.
    pub const PREFIX: &str = "pw_";

    /// Creates a key: its id, and the text to show once.
    pub fn make(random: &mut impl Rng) -> (String, String) {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes).replace(['-', '_'], "x");
        let id = encode(&random.random::<[u8; 6]>());
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random.random::<[u8; 32]>());
        let text = format!("{}{id}_{secret}", Self::PREFIX);
        (id, text)
    }

    /// Whether it is valid at `now`.
    pub fn is_valid(&self, now: Time) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    /// Whether it may be used from this address.
    pub fn allows(&self, from: Option<IpAddr>) -> bool {
        self.networks.is_empty()
            || from.is_some_and(|from| self.networks.iter().any(|network| network.contains(from)))
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn keys_differ_and_show_their_id() {
        let mut random = StdRng::seed_from_u64(7);
        let (id, text) = ApiKey::make(&mut random);
        let (other, _) = ApiKey::make(&mut random);
        assert_ne!(id, other);
        assert!(text.starts_with(&format!("pw_{id}_")) && text.len() >= 50, "{text}");
        assert_eq!(KeyDigest::of(text.as_bytes()), KeyDigest::of(text.as_bytes()));
        assert!(!format!("{:?}", KeyDigest::of(b"a")).contains("202"));
    }

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.9.8.7", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.1", "::1"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ] {
            let parsed: IpNetwork = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{inside} in {network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{outside} not in {network}");
        }
        for (network, is_private) in [
            ("172.18.0.0/16", true),
            ("10.0.0.0/8", true),
            ("10.0.0.0/7", false),
            ("192.0.2.0/24", false),
            ("0.0.0.0/0", false),
            ("fd00::/8", true),
            ("::1", true),
            ("2001:db8::/32", false),
        ] {
            assert_eq!(network.parse::<IpNetwork>().unwrap().is_private(), is_private, "{network}");
        }
        assert!("::/0".parse::<IpNetwork>().unwrap().is_everything());
        for wrong in ["", "10.0.0.0/33", "a/8", "10.0.0.0/x", "::/129"] {
            assert!(wrong.parse::<IpNetwork>().is_err(), "{wrong}");
        }
    }
}
