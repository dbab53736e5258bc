//! Passkeys: what a browser answers to a challenge of WebAuthn, checked.
//!
//! A device signs that its owner is there (a finger, a face, a PIN), for one host and one challenge. The host
//! is stored with the passkey, and the device itself refuses every other one: an answer that was given to
//! another site is not for this host. Where the gateway is reached through proxies it needs no setting for that.
//!
//! No device is asked to prove its make (attestation `none`), so nothing of what comes with a new passkey is
//! signed. Its public key is therefore taken in the form that browsers give, and no CBOR is read.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{
        ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    Time,
    id::UserId,
    secret::SecretKey,
    user::{UserCredentials, UserPasskey},
};
use serde::{Deserialize, Serialize};
use url::{Host, Url};
use utoipa::ToSchema;

use super::invitation as sealed;
use crate::http::error::ApiError;

/// The algorithms that are offered, the best first, by their numbers in the registry of COSE.
pub(crate) const ALGORITHMS: [i64; 3] = [-8, -7, -257];
/// How long a person may take to answer.
pub(crate) const ANSWER_MS: i64 = 5 * 60 * 1_000;
/// The longest id of a passkey, in bytes: as the standard has it.
const ID_BYTES_MAX: usize = 1_023;
/// The longest part of an answer, in characters.
const PART_CHARS_MAX: usize = 4_096;
/// What the authenticator's data says: a person was there, it knew which, and an id follows.
const PRESENT: u8 = 0x01;
const RECOGNISED: u8 = 0x04;
const ATTESTED: u8 = 0x40;

/// A question to a device, sealed, so that no node has to remember it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PasskeyChallenge {
    /// What the device signs.
    pub(crate) challenge: String,
    /// Whose new passkey it is for; none for a sign-in.
    pub(crate) user: Option<UserId>,
    /// When it was asked.
    pub(crate) at: Time,
}

impl PasskeyChallenge {
    /// The purpose that challenges are sealed for.
    const PLACE: &'static str = "passkey_challenge";

    /// A new one.
    pub(crate) fn make(user: Option<UserId>, at: Time) -> Self {
        Self { challenge: BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()), user, at }
    }

    /// The text for the page.
    pub(crate) fn seal(&self, secret_key: &SecretKey) -> Result<String, ApiError> {
        sealed::seal(secret_key, Self::PLACE, self)
    }

    /// Reads the text that the page sends back, if it is for this user and not too late.
    pub(crate) fn open(
        secret_key: &SecretKey,
        text: &str,
        user: Option<UserId>,
        now: Time,
    ) -> Result<Self, PasskeyFault> {
        let opened: Self = sealed::open(secret_key, Self::PLACE, text).ok_or(LATE)?;
        let age = now.as_millis() - opened.at.as_millis();
        if opened.user == user && (0..ANSWER_MS).contains(&age) { Ok(opened) } else { Err(LATE) }
    }
}

const LATE: PasskeyFault = PasskeyFault("was answered too late, or is another one: begin again");

/// Why an answer is not accepted, as the end of a sentence about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PasskeyFault(pub(crate) &'static str);

/// A new passkey, as the browser answers. All but the name is in base64url.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PasskeyRequest)]
pub(crate) struct NewPasskeyAnswer {
    /// What you call it: 1 to 60 characters.
    pub(crate) name: String,
    /// The id that the device gave it.
    id: String,
    /// `clientDataJSON`.
    client_data: String,
    /// `getAuthenticatorData()`.
    authenticator_data: String,
    /// `getPublicKey()`.
    public_key: String,
    /// `getPublicKeyAlgorithm()`: -7 (ES256), -8 (Ed25519) or -257 (RS256).
    algorithm: i64,
}

/// A challenge signed with a passkey, as the browser answers. All of it is in base64url.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PasskeySignature)]
pub(crate) struct PasskeySignature {
    /// The passkey's id.
    pub(crate) id: String,
    /// `userHandle`: the id of the user that the passkey was made for.
    user_handle: String,
    /// `clientDataJSON`.
    client_data: String,
    /// `authenticatorData`.
    authenticator_data: String,
    /// `signature`.
    signature: String,
}

/// What the browser says that it asked the device for.
#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    is_cross_origin: bool,
}

impl NewPasskeyAnswer {
    /// The passkey to store, if the answer is one to this challenge.
    pub(crate) fn accept(&self, challenge: &str, now: Time) -> Result<UserPasskey, PasskeyFault> {
        let name = self.name.trim();
        if name.is_empty() || name.chars().count() > UserPasskey::NAME_CHARS_MAX {
            return Err(PasskeyFault("needs a name of 1 to 60 characters"));
        }
        let id = bytes_of(&self.id)?;
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(PasskeyFault("has an id that no device gives"));
        }
        let host = host_asked(&bytes_of(&self.client_data)?, "webauthn.create", challenge)?;
        let data = bytes_of(&self.authenticator_data)?;
        let uses = uses_in(&data, &host)?;
        if data[32] & ATTESTED == 0 || data.get(53..55) != Some(&(id.len() as u16).to_be_bytes()[..]) {
            return Err(PasskeyFault("is not what the device's data is about"));
        }
        if data.get(55..55 + id.len()) != Some(&id[..]) {
            return Err(PasskeyFault("is not what the device's data is about"));
        }
        let public_key = bytes_of(&self.public_key)?;
        parsed_key(self.algorithm, &public_key)?;
        Ok(UserPasskey {
            id: BASE64_URL_SAFE_NO_PAD.encode(id),
            name: name.to_owned(),
            host,
            algorithm: self.algorithm,
            public_key: BASE64_URL_SAFE_NO_PAD.encode(public_key),
            uses,
            added_at: now,
            challenged_at: None,
        })
    }
}

impl PasskeySignature {
    /// Whose passkey it is, as the device says.
    pub(crate) fn user(&self) -> Option<UserId> {
        let bytes = bytes_of(&self.user_handle).ok()?;
        Some(UserId::from_bytes(bytes.try_into().ok()?))
    }

    /// The passkey among these, as it is after this sign-in: used once more, and closed to this challenge and
    /// earlier ones.
    pub(crate) fn open(
        &self,
        credentials: &UserCredentials,
        asked: &PasskeyChallenge,
    ) -> Result<UserPasskey, PasskeyFault> {
        let found = credentials.passkeys.iter().find(|passkey| passkey.id == self.id);
        let passkey = found.ok_or(PasskeyFault("is none of the user's"))?;
        if passkey.challenged_at.is_some_and(|last| asked.at <= last) {
            return Err(PasskeyFault("has answered this or a later challenge already"));
        }
        let (client_data, data) = (bytes_of(&self.client_data)?, bytes_of(&self.authenticator_data)?);
        let host = host_asked(&client_data, "webauthn.get", &asked.challenge)?;
        if host != passkey.host {
            return Err(PasskeyFault("was made for another host"));
        }
        let uses = uses_in(&data, &host)?;
        let signed = [data.as_slice(), digest(&SHA256, &client_data).as_ref()].concat();
        let key = parsed_key(passkey.algorithm, &bytes_of(&passkey.public_key)?)?;
        let is_signed = key.verify_sig(&signed, &bytes_of(&self.signature)?);
        is_signed.map_err(|_| PasskeyFault("did not sign the challenge"))?;
        // A counter that does not rise is that of a copy; devices that do not count always say 0.
        if (uses, passkey.uses) != (0, 0) && uses <= passkey.uses {
            return Err(PasskeyFault("may be a copy: its counter did not rise"));
        }
        Ok(UserPasskey { uses, challenged_at: Some(asked.at), ..passkey.clone() })
    }
}

fn bytes_of(text: &str) -> Result<Vec<u8>, PasskeyFault> {
    let fits = text.len() <= PART_CHARS_MAX;
    let decoded = fits.then(|| BASE64_URL_SAFE_NO_PAD.decode(text).ok()).flatten();
    decoded.ok_or(PasskeyFault("has a part that is not base64url, or too long"))
}

/// The host whose page asked, if it asked for this, with this challenge, by itself and over TLS.
fn host_asked(client_data: &[u8], kind: &str, challenge: &str) -> Result<String, PasskeyFault> {
    let said: ClientData =
        serde_json::from_slice(client_data).map_err(|_| PasskeyFault("has no readable client data"))?;
    if said.kind != kind || said.challenge != challenge {
        return Err(PasskeyFault("is no answer to this challenge"));
    }
    let page = Url::parse(&said.origin).ok().filter(|_| !said.is_cross_origin);
    let page = page.ok_or(PasskeyFault("was asked for by another site"))?;
    let Some(Host::Domain(host)) = page.host() else {
        return Err(PasskeyFault("was asked for by a page without a host name"));
    };
    let is_this_machine = host == "localhost" || host.ends_with(".localhost");
    if page.scheme() != "https" && !(page.scheme() == "http" && is_this_machine) {
        return Err(PasskeyFault("was asked for without TLS"));
    }
    Ok(host.to_owned())
}

/// The device's counter, if its data is for this host and its owner was recognised.
fn uses_in(data: &[u8], host: &str) -> Result<u32, PasskeyFault> {
    let Some((head, _)) = data.split_first_chunk::<37>() else {
        return Err(PasskeyFault("has too little data of the device"));
    };
    if head[..32] != *digest(&SHA256, host.as_bytes()).as_ref() {
        return Err(PasskeyFault("is for another host"));
    }
    if head[32] & (PRESENT | RECOGNISED) != PRESENT | RECOGNISED {
        return Err(PasskeyFault("did not recognise you: allow a finger, a face or a PIN"));
    }
    Ok(u32::from_be_bytes([head[33], head[34], head[35], head[36]]))
}

fn parsed_key(algorithm: i64, public_key: &[u8]) -> Result<ParsedPublicKey, PasskeyFault> {
    let verification: &'static dyn VerificationAlgorithm = match algorithm {
        -7 => &ECDSA_P256_SHA256_ASN1,
        -8 => &ED25519,
        -257 => &RSA_PKCS1_2048_8192_SHA256,
        _ => return Err(PasskeyFault("has an algorithm that was not offered")),
    };
    ParsedPublicKey::new(verification, public_key).map_err(|_| PasskeyFault("has no readable public key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_data(kind: &str, challenge: &str, origin: &str, more: &str) -> Vec<u8> {
        format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{origin}"{more}}}"#).into_bytes()
    }

    #[test]
    fn only_a_page_of_ones_own_host_over_tls_asks() {
        let host = |data: &[u8]| host_asked(data, "webauthn.get", "abc").map_err(|fault| fault.0);
        let of = |origin: &str| host(&client_data("webauthn.get", "abc", origin, ""));
        assert_eq!(of("https://mail.example.org"), Ok("mail.example.org".to_owned()));
        assert_eq!(of("https://mail.example.org:8443"), Ok("mail.example.org".to_owned()));
        assert_eq!(of("http://localhost:8520"), Ok("localhost".to_owned()));
        for origin in
            ["http://mail.example.org", "https://192.0.2.1", "https://[::1]", "null", "ftp://localhost"]
        {
            assert!(of(origin).is_err(), "{origin}");
        }
        assert!(host(&client_data("webauthn.create", "abc", "https://a.example", "")).is_err());
        assert!(host(&client_data("webauthn.get", "abd", "https://a.example", "")).is_err());
        assert!(
            host(&client_data("webauthn.get", "abc", "https://a.example", r#","crossOrigin":true"#)).is_err()
        );
        assert!(host(b"{}").is_err() && host(b"\xff").is_err());
    }

    #[test]
    fn a_device_must_have_recognised_its_owner_for_this_host() {
        let data = |host: &str, flags: u8| {
            let mut data = digest(&SHA256, host.as_bytes()).as_ref().to_vec();
            data.push(flags);
            data.extend(7_u32.to_be_bytes());
            data
        };
        assert_eq!(uses_in(&data("a.example", 0x05), "a.example"), Ok(7));
        assert_eq!(uses_in(&data("a.example", 0x1d), "a.example"), Ok(7));
        for (host, flags) in [("b.example", 0x05), ("a.example", 0x01), ("a.example", 0x04), ("a.example", 0)]
        {
            assert!(uses_in(&data(host, flags), "a.example").is_err(), "{host} {flags}");
        }
        assert!(uses_in(&data("a.example", 0x05)[..36], "a.example").is_err());
        assert!(uses_in(&[], "a.example").is_err());
    }
}
