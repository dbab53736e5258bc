//! The server side of AUTH SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O and randomness: the caller
//! provides salt and nonce.
//!
//! A user name may have several keys, as a tenant does: they share a salt, and the proof shows which one was
//! used. An unknown name gets a salt too, and at the end the same reply as a wrong proof.
//!
//! There is no channel binding: `n` and `y` are accepted and `p` is refused, because no -PLUS mechanism is
//! offered.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{KeyDigest, TenantId, scram::ScramVerifier};

/// The longest nonce of a client.
const NONCE_OCTETS_MAX: usize = 256;
/// The longest user name, as sent.
const NAME_OCTETS_MAX: usize = 1_024;

/// The data that a proof is checked against.
#[derive(Clone, Debug)]
pub struct ScramOffer {
    /// The salt for the key.
    pub salt: Vec<u8>,
    /// The number of iterations.
    pub iterations: u32,
    /// The keys of the user name; empty if the name is unknown.
    pub candidates: Vec<ScramCandidate>,
}

/// One key that may be proven.
#[derive(Clone, Debug)]
pub struct ScramCandidate {
    /// The verifier of the key.
    pub verifier: ScramVerifier,
    /// The key that the proof identifies.
    pub key: ProvenKey,
}

/// A key that was proven and not shown. It is checked again for every mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvenKey {
    /// The admin key, for this tenant.
    Admin(TenantId),
    /// A tenant's key, by its digest.
    Tenant(KeyDigest),
}

/// The client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScramHello {
    /// The user name.
    pub(super) username: String,
    /// The GS2 header, such as `n,,`, which the client repeats at the end.
    gs2_header: String,
    /// The rest of the message, unchanged.
    bare: String,
    nonce: String,
}

impl ScramHello {
    /// Parses `n,,n=user,r=nonce`; `None` if the text has another form.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ',');
        let (binding, authzid, bare) = (parts.next()?, parts.next()?, parts.next()?);
        if !matches!(binding, "n" | "y") {
            return None;
        }
        let mut attributes = bare.split(',');
        // `m=` would come first: a mandatory extension, and none is supported.
        let username = unescaped(attributes.next()?.strip_prefix("n=")?)?;
        let nonce = attributes.next()?.strip_prefix("r=")?.to_owned();
        let is_nonce = (1..=NONCE_OCTETS_MAX).contains(&nonce.len())
            && nonce.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
        let speaks_for_itself = match authzid {
            "" => true,
            authzid => unescaped(authzid.strip_prefix("a=")?)? == username,
        };
        let gs2_header = format!("{binding},{authzid},");
        let bare = bare.to_owned();
        (is_nonce && speaks_for_itself).then_some(Self { username, gs2_header, bare, nonce })
    }

    /// Continues with the data for the user name: the exchange, and the message to the client.
    pub(super) fn answer(self, offer: ScramOffer, server_nonce: &str) -> (ScramExchange, String) {
        let nonce = format!("{}{server_nonce}", self.nonce);
        let salt = BASE64_STANDARD.encode(&offer.salt);
        let first = format!("r={nonce},s={salt},i={}", offer.iterations);
        let exchange = ScramExchange {
            binding: BASE64_STANDARD.encode(&self.gs2_header),
            so_far: format!("{},{first}", self.bare),
            nonce,
            candidates: offer.candidates,
        };
        (exchange, first)
    }
}

/// Decodes the commas and equals signs of a user name.
fn unescaped(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('=') {
        out.push_str(before);
        out.push(match after.get(..2)? {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        rest = &after[2..];
    }
    out.push_str(rest);
    (name.len() <= NAME_OCTETS_MAX && !out.contains('\0')).then_some(out)
}

/// An exchange that waits for the client's proof.
#[derive(Debug)]
pub(super) struct ScramExchange {
    binding: String,
    so_far: String,
    nonce: String,
    candidates: Vec<ScramCandidate>,
}

/// The result of a proof.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScramEnd {
    /// This key was proven; the text is the server's own proof.
    Proven(ProvenKey, String),
    /// No key was proven.
    Unproven,
}

impl ScramExchange {
    /// Parses `c=biws,r=nonce,p=proof`; `None` if the text has another form.
    pub(super) fn finish(self, text: &str) -> Option<ScramEnd> {
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let proof = BASE64_STANDARD.decode(proof).ok()?;
        let mut attributes = without_proof.split(',');
        let (binding, nonce) =
            (attributes.next()?.strip_prefix("c=")?, attributes.next()?.strip_prefix("r=")?);
        if binding != self.binding || nonce != self.nonce {
            return Some(ScramEnd::Unproven);
        }
        let exchange = format!("{},{without_proof}", self.so_far);
        let proven = self.candidates.into_iter().find(|one| one.verifier.proves(exchange.as_bytes(), &proof));
        Some(match proven {
            Some(ScramCandidate { verifier, key }) => {
                let signature = BASE64_STANDARD.encode(verifier.server_signature(exchange.as_bytes()));
                ScramEnd::Proven(key, format!("v={signature}"))
            }
            None => ScramEnd::Unproven,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

    fn offer(keys: &[&str]) -> ScramOffer {
        let salt: [u8; 16] = BASE64_STANDARD.decode(SALT).unwrap().try_into().unwrap();
        let candidate = |key: &&str| ScramCandidate {
            verifier: ScramVerifier::of(key, salt),
            key: ProvenKey::Tenant(KeyDigest::of(key.as_bytes())),
        };
        ScramOffer {
            salt: salt.to_vec(),
            iterations: 4_096,
            candidates: keys.iter().map(candidate).collect(),
        }
    }

    fn begun(keys: &[&str]) -> ScramExchange {
        let hello = ScramHello::read("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        let (exchange, first) = hello.answer(offer(keys), SERVER_NONCE);
        assert_eq!(first, format!("r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},s={SALT},i=4096"));
        exchange
    }

    /// The example of RFC 7677, with the key among others, and without it.
    #[test]
    fn the_published_exchange_proves_the_key_and_the_server() {
        let last = format!(
            "c=biws,r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        let proven = ProvenKey::Tenant(KeyDigest::of(b"pencil"));
        let end = ScramEnd::Proven(proven, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned());
        assert_eq!(begun(&["other", "pencil", "third"]).finish(&last), Some(end));
        assert_eq!(begun(&["other"]).finish(&last), Some(ScramEnd::Unproven));
        assert_eq!(begun(&[]).finish(&last), Some(ScramEnd::Unproven));
        for (right, wrong) in
            [("c=biws", "c=eSws"), ("hNlF$k0", "hNlF$k1"), ("p=dHzb", "p=AHzb"), ("p=dHzb", "x=y,p=dHzb")]
        {
            let last = last.replace(right, wrong);
            assert_eq!(begun(&["pencil"]).finish(&last), Some(ScramEnd::Unproven), "{wrong}");
        }
        for unread in ["", "c=biws", "c=biws,r=x", "c=biws,r=x,p=!", "r=x,c=biws,p=AAAA", ",p="] {
            assert_eq!(begun(&["pencil"]).finish(unread), None, "{unread}");
        }
    }

    #[test]
    fn a_hello_is_read_strictly() {
        let username = |text: &str| ScramHello::read(text).map(|hello| hello.username);
        assert_eq!(username("n,,n=user,r=x").as_deref(), Some("user"));
        assert_eq!(username("y,a=user,n=user,r=x,ext=1").as_deref(), Some("user"));
        assert_eq!(username("n,,n=a=2Cb=3D,r=x").as_deref(), Some("a,b="));
        let (long, name) = ("x".repeat(NONCE_OCTETS_MAX + 1), "u".repeat(NAME_OCTETS_MAX + 1));
        for wrong in [
            "",
            "n",
            "n,,",
            "n,,n=user",
            "n,,r=x,n=user",
            "n,,m=1,n=user,r=x",
            "n,,n=user,r=",
            "n,,n=user,r=a b",
            "p=tls-exporter,,n=user,r=x",
            "n,a=other,n=user,r=x",
            "n,b=user,n=user,r=x",
            "n,,n=a=2c,r=x",
            "n,,n=a=,r=x",
            &format!("n,,n=user,r={long}"),
            &format!("n,,n={name},r=x"),
        ] {
            assert_eq!(username(wrong), None, "{wrong}");
        }
    }
}
