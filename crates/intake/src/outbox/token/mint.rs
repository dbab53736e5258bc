//! Secrets and codes, derived from nonces.

use aws_lc_rs::{digest, hmac};
use postway_domain::secret::SecretKey;

use super::link::SECRET_BYTES;

/// The number of codes: five digits.
const CODES: u32 = 100_000;
/// Larger numbers would make some codes more likely than others.
const FAIR_BELOW: u32 = u32::MAX - u32::MAX % CODES;

/// Derives the secrets and codes of one source's tokens.
pub(in super::super) struct TokenMint {
    key: hmac::Key,
    source: String,
}

impl TokenMint {
    /// A mint with the gateway's secret key, for one source.
    pub(in super::super) fn new(secret_key: &SecretKey, source: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret_key.derive("outbox-token"));
        Self { key, source: source.to_owned() }
    }

    fn derive(&self, purpose: &str, nonce: &str, round: u32) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        // Neither a purpose nor the name of a source contains a zero byte.
        for part in [purpose, &self.source, nonce] {
            context.update(part.as_bytes());
            context.update(&[0]);
        }
        context.update(&round.to_be_bytes());
        context.sign()
    }

    /// The secret of a token.
    pub(in super::super) fn secret(&self, nonce: &str) -> [u8; SECRET_BYTES] {
        let mut secret = [0; SECRET_BYTES];
        secret.copy_from_slice(self.derive("secret", nonce, 0).as_ref());
        secret
    }

    /// The code of a token: five digits, each as likely as any other.
    pub(in super::super) fn code(&self, nonce: &str) -> String {
        let mut round = 0;
        loop {
            let drawn = self.derive("code", nonce, round);
            let numbers = drawn.as_ref().chunks_exact(4);
            let mut numbers = numbers.map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
            if let Some(fair) = numbers.find(|number| *number < FAIR_BELOW) {
                return format!("{:05}", fair % CODES);
            }
            round += 1;
        }
    }

    /// The digest of a code. It is keyed, because there are few codes.
    pub(in super::super) fn code_hash(&self, nonce: &str, code: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.derive("code hash", nonce, 0).as_ref());
        hash.copy_from_slice(hmac::sign(&key, code.as_bytes()).as_ref());
        hash
    }
}

/// The SHA-256 of bytes that cannot be guessed.
pub(in super::super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// Bytes in hexadecimal, as the database reads them.
pub(in super::super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mint(source: &str) -> TokenMint {
        TokenMint::new(&SecretKey::from_bytes(&[7; 32]).unwrap(), source)
    }

    #[test]
    fn a_token_has_one_secret_and_one_code() {
        let (mint, again, other) = (mint("app"), mint("app"), mint("other"));
        assert_eq!((mint.secret("n"), mint.code("n")), (again.secret("n"), again.code("n")));
        assert_ne!(mint.secret("n"), mint.secret("m"));
        assert_ne!(mint.secret("n"), other.secret("n"));
        assert_ne!(mint.code_hash("n", "12345"), mint.code_hash("m", "12345"));
    }

    #[test]
    fn codes_have_five_digits_and_are_spread_evenly() {
        let mint = mint("app");
        let mut firsts = [0_u32; 10];
        for number in 0..20_000 {
            let code = mint.code(&format!("nonce-{number}"));
            assert!(code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
            firsts[usize::from(code.as_bytes()[0] - b'0')] += 1;
        }
        // Two thousand each, give or take five standard deviations.
        assert!(firsts.iter().all(|count| (1_780..=2_220).contains(count)), "{firsts:?}");
        assert_eq!(FAIR_BELOW % CODES, 0);
    }
}
