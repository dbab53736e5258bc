//! `admin_key` and `secret_key`: secrets that are made on first start unless given. `secret_key_previous` opens what the
//! secret key before this one has sealed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};

use super::layers::Layers;

const ADMIN_KEY_CHARS_MIN: usize = 32;
const ADMIN_KEY_CHARS_MAX: usize = 4096;
const SECRET_KEY_BYTES: usize = 32;

/// A secret that shows itself as `***`, whoever asks, and is wiped when dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes a secret into keeping.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The secret itself, for the one who needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Reads `admin_key`, or `telemetry.metrics_key`, which has the same form.
pub(super) fn read_admin_key(layers: &mut Layers, key: &'static str) -> Option<Option<Secret>> {
    layers.take_optional(key, |text| match is_admin_key(text) {
        true => Ok(Secret::new(text)),
        false => Err(format!(
            "must be {ADMIN_KEY_CHARS_MIN} to {ADMIN_KEY_CHARS_MAX} printable ASCII characters, with no space at either end; \
             make one with: openssl rand -hex 32"
        )),
    })
}

/// Reads `secret_key`, or `secret_key_previous`, which has the same form.
pub(super) fn read_secret_key(layers: &mut Layers, key: &'static str) -> Option<Option<Secret>> {
    layers.take_optional(key, |text| match BASE64_STANDARD.decode(text) {
        Ok(bytes) if bytes.len() == SECRET_KEY_BYTES => Ok(Secret::new(text)),
        Ok(_) | Err(_) => Err(format!(
            "must be {SECRET_KEY_BYTES} bytes in standard base64; make one with: openssl rand -base64 32"
        )),
    })
}

/// The key travels in an HTTP header, which carries ASCII and trims its ends.
fn is_admin_key(text: &str) -> bool {
    (ADMIN_KEY_CHARS_MIN..=ADMIN_KEY_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::new("correct horse");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.expose(), "correct horse");
    }
}
