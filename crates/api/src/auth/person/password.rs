//! Passwords: Argon2id with the parameters that OWASP recommends (19 MiB, two passes, one lane).
//!
//! A check takes memory and tens of milliseconds on purpose. At most a few run at once, so that strangers
//! cannot take the machine; the others wait for a moment and may then try again. A name without a
//! password costs as much as one with, so nobody learns which names exist by measuring time.

use std::{sync::Arc, time::Duration};

use argon2::{
    Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version,
    password_hash::SaltString,
};
use tokio::sync::Semaphore;

use crate::http::error::ApiError;

/// The shortest password, in characters.
pub(crate) const CHARS_MIN: usize = 12;
/// The longest password, in bytes.
pub(crate) const BYTES_MAX: usize = 1_024;
/// A shorter name may be part of a password by chance.
const NAME_CHARS_MIN: usize = 4;
/// KiB of memory, passes and lanes.
const COST: (u32, u32, u32) = (19 * 1_024, 2, 1);
/// How many are hashed at once.
const AT_ONCE: usize = 2;
/// How long a request waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// What a password is compared with if the user has no hash: the hash of something random that nobody knows.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$YXhxYnRrZm1wd3l2c2RqaA$9H9eGEwTtRbN8oZJQr2qOqFJcMwO9c7l8kqgJrq1b1U";

/// Hashes and checks passwords, a few at a time.
pub(crate) struct PasswordCheck(Arc<Semaphore>);

impl Default for PasswordCheck {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl PasswordCheck {
    /// The hash to store, with a salt of its own.
    pub(crate) async fn hash(&self, password: String) -> Result<String, ApiError> {
        let salt: [u8; 16] = rand::random();
        self.run(move || {
            let salt = SaltString::encode_b64(&salt).map_err(ApiError::internal)?;
            let hash = hasher()?.hash_password(password.as_bytes(), &salt).map_err(ApiError::internal)?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Whether the password is the one with this hash; without a hash no password is.
    pub(crate) async fn verify(&self, password: String, hash: Option<&str>) -> Result<bool, ApiError> {
        let is_someones = hash.is_some();
        let hash = hash.unwrap_or(NOBODYS).to_owned();
        self.run(move || {
            let parsed = PasswordHash::new(&hash).map_err(ApiError::internal)?;
            let is_same = hasher()?.verify_password(password.as_bytes(), &parsed).is_ok();
            Ok(is_same && is_someones)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || ApiError::busy("too many sign in at once; nothing was done, try again");
        let turn = tokio::time::timeout(WAIT_MAX, self.0.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| busy())?.map_err(ApiError::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.map_err(ApiError::internal)?
    }
}

fn hasher() -> Result<Argon2<'static>, ApiError> {
    let params = Params::new(COST.0, COST.1, COST.2, None).map_err(ApiError::internal)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Why a password is not accepted as a new one, if it is not.
pub(crate) fn refusal(password: &str, name: &str) -> Option<String> {
    if password.chars().count() < CHARS_MIN {
        return Some(format!("must have at least {CHARS_MIN} characters"));
    }
    if password.len() > BYTES_MAX {
        return Some(format!("must have at most {BYTES_MAX} bytes"));
    }
    let mut characters: Vec<char> = password.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    let has_name = name.len() >= NAME_CHARS_MIN && password.to_lowercase().contains(&name.to_lowercase());
    let is_plain = characters.len() < 5 || has_name;
    is_plain.then(|| "must not contain your name, nor be made of a few characters only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_opens_its_own_hash_and_no_other() {
        let check = PasswordCheck::default();
        let hash = check.hash("correct horse battery".to_owned()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(check.verify("correct horse battery".to_owned(), Some(&hash)).await.unwrap());
        assert!(!check.verify("correct horse batterx".to_owned(), Some(&hash)).await.unwrap());
        assert_ne!(check.hash("correct horse battery".to_owned()).await.unwrap(), hash, "each has its salt");
        assert!(!check.verify("correct horse battery".to_owned(), None).await.unwrap());
        assert!(check.verify(String::new(), Some("not a hash")).await.is_err());
    }

    #[test]
    fn what_is_easily_guessed_is_refused() {
        for (password, fits) in [
            ("correct horse battery", true),
            ("short", false),
            ("aaaaaaaaaaaaaaaaaaaa", false),
            ("xx-Ada.King-xx-99", false),
            (&*"x1y2z".repeat(300), false),
        ] {
            assert_eq!(refusal(password, "ada.king").is_none(), fits, "{password}");
        }
    }
}
