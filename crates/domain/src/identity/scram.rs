//! SCRAM-SHA-256 (RFC 5802, RFC 7677): verifiers of API keys, so that a client can prove that it has a key
//! without sending it.
//!
//! A stolen verifier lets an attacker pretend to be the server, not the client. Keys are long and random, so
//! the lowest number of iterations that the standard allows is enough, and a salt that keys share reveals
//! nothing. The shared salt lets a client name the tenant instead of the key.

use std::num::NonZeroU32;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2};

use crate::identity::secret::SecretKey;

/// Octets of a salt.
pub const SALT_BYTES: usize = 16;
/// The iterations of new verifiers: the standard's minimum (RFC 7677, 4).
pub const ITERATIONS: u32 = 4_096;
/// The most iterations of a stored verifier.
const ITERATIONS_MAX: u32 = 1_000_000;
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;
/// Octets of a verifier as it is stored.
const STORED_BYTES: usize = 4 + SALT_BYTES + 2 * KEY_BYTES;

/// The salt of verifiers under this secret key.
pub fn salt_of(secret_key: &SecretKey) -> [u8; SALT_BYTES] {
    let derived = secret_key.derive("SCRAM-SHA-256 salt");
    std::array::from_fn(|at| derived[at])
}

/// The stored data that a proof is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    /// The salt.
    pub salt: [u8; SALT_BYTES],
    /// The number of iterations.
    pub iterations: u32,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
}

impl std::fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScramVerifier(…)")
    }
}

impl ScramVerifier {
    /// The verifier of a key. Takes about a millisecond to compute.
    pub fn of(key: &str, salt: [u8; SALT_BYTES]) -> Self {
        Self::with_iterations(key, salt, NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN))
    }

    fn with_iterations(key: &str, salt: [u8; SALT_BYTES], iterations: NonZeroU32) -> Self {
        let salted = salted(key, &salt, iterations);
        let client_key = keyed(&salted, b"Client Key");
        let mut stored_key = [0; KEY_BYTES];
        stored_key.copy_from_slice(digest::digest(&digest::SHA256, &client_key).as_ref());
        Self { salt, iterations: iterations.get(), stored_key, server_key: keyed(&salted, b"Server Key") }
    }

    /// Whether `proof` shows that the client of this exchange has the key. Compared in constant time.
    pub fn proves(&self, exchange: &[u8], proof: &[u8]) -> bool {
        let Ok(proof) = <[u8; KEY_BYTES]>::try_from(proof) else { return false };
        let signature = keyed(&self.stored_key, exchange);
        let client_key = xor(proof, signature);
        let digest = digest::digest(&digest::SHA256, &client_key);
        constant_time::verify_slices_are_equal(digest.as_ref(), &self.stored_key).is_ok()
    }

    /// The signature that proves to the client that the server knows its key.
    pub fn server_signature(&self, exchange: &[u8]) -> [u8; KEY_BYTES] {
        keyed(&self.server_key, exchange)
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.iterations.to_be_bytes()[..], &self.salt, &self.stored_key, &self.server_key].concat()
    }

    /// Reads the stored form; `None` if it is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; STORED_BYTES] = bytes.try_into().ok()?;
        let (iterations, rest) = bytes.split_first_chunk::<4>()?;
        let (salt, rest) = rest.split_first_chunk::<SALT_BYTES>()?;
        let (stored_key, server_key) = rest.split_first_chunk::<KEY_BYTES>()?;
        let iterations = u32::from_be_bytes(*iterations);
        let verifier = Self {
            salt: *salt,
            iterations,
            stored_key: *stored_key,
            server_key: server_key.try_into().ok()?,
        };
        (ITERATIONS..=ITERATIONS_MAX).contains(&iterations).then_some(verifier)
    }
}

fn salted(key: &str, salt: &[u8], iterations: NonZeroU32) -> [u8; KEY_BYTES] {
    let mut salted = [0; KEY_BYTES];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, key.as_bytes(), &mut salted);
    salted
}

fn keyed(key: &[u8], text: &[u8]) -> [u8; KEY_BYTES] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(tag.as_ref());
    out
}

fn xor(left: [u8; KEY_BYTES], right: [u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    std::array::from_fn(|at| left[at] ^ right[at])
}

/// The client's proof that it has the key; used by clients and tests.
pub fn client_proof(key: &str, salt: &[u8], iterations: u32, exchange: &[u8]) -> Vec<u8> {
    let iterations = NonZeroU32::new(iterations.min(ITERATIONS_MAX)).unwrap_or(NonZeroU32::MIN);
    let client_key = keyed(&salted(key, salt, iterations), b"Client Key");
    let stored_key = digest::digest(&digest::SHA256, &client_key);
    xor(client_key, keyed(stored_key.as_ref(), exchange)).to_vec()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::*;

    /// RFC 7677, section 3.
    const EXCHANGE: &str = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
        r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
        c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SIGNATURE: &str = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn decoded(text: &str) -> Vec<u8> {
        BASE64_STANDARD.decode(text).unwrap()
    }

    fn salt() -> [u8; SALT_BYTES] {
        decoded("W22ZaJ0SNY7soEsUEjb6gQ==").try_into().unwrap()
    }

    #[test]
    fn the_published_example_holds() {
        let verifier = ScramVerifier::of("pencil", salt());
        assert!(verifier.proves(EXCHANGE.as_bytes(), &decoded(PROOF)));
        assert_eq!(verifier.server_signature(EXCHANGE.as_bytes())[..], decoded(SIGNATURE));
        assert_eq!(client_proof("pencil", &salt(), ITERATIONS, EXCHANGE.as_bytes()), decoded(PROOF));
    }

    #[test]
    fn another_key_exchange_or_proof_proves_nothing() {
        let verifier = ScramVerifier::of("pencil", salt());
        let proof = decoded(PROOF);
        assert!(!ScramVerifier::of("pencils", salt()).proves(EXCHANGE.as_bytes(), &proof));
        assert!(!ScramVerifier::of("pencil", [0; SALT_BYTES]).proves(EXCHANGE.as_bytes(), &proof));
        assert!(!verifier.proves(b"another exchange", &proof));
        for wrong in [&proof[1..], &[], &[0; KEY_BYTES], &[0; 64]] {
            assert!(!verifier.proves(EXCHANGE.as_bytes(), wrong));
        }
    }

    #[test]
    fn a_verifier_is_stored_and_read_back_and_nothing_else_is_one() {
        let verifier = ScramVerifier::of("pencil", salt());
        let bytes = verifier.to_bytes();
        assert_eq!(ScramVerifier::from_bytes(&bytes), Some(verifier.clone()));
        assert!(!format!("{verifier:?}").contains("91"));
        let mut endless = bytes.clone();
        endless[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut weak = bytes.clone();
        weak[..4].copy_from_slice(&1_u32.to_be_bytes());
        for wrong in [&bytes[1..], &[], &endless, &weak] {
            assert_eq!(ScramVerifier::from_bytes(wrong), None);
        }
    }
}
