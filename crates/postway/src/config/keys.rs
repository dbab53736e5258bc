//! `admin_key` and `secret_key`: secrets that are made on the first start unless they are configured.
//! `secret_key_previous` decrypts what earlier secret keys have encrypted.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};

use super::layers::ConfigLayers;

const ADMIN_KEY_CHARS_MIN: usize = 32;
const ADMIN_KEY_CHARS_MAX: usize = 4096;
const SECRET_KEY_BYTES: usize = 32;
/// The most previous keys. Each is tried on everything that the newer ones cannot decrypt.
const PREVIOUS_KEYS_MAX: usize = 8;

/// A secret that prints as `***` and is wiped from memory when dropped.
#[derive(Clone)]
pub struct ConfigSecret(SecretString);

impl ConfigSecret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for ConfigSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::fmt::Display for ConfigSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Reads `admin_key`, or `telemetry.metrics_key`, which has the same form.
pub(super) fn read_admin_key(layers: &mut ConfigLayers, key: &'static str) -> Option<Option<ConfigSecret>> {
    layers.take_optional(key, |text| match is_admin_key(text) {
        true => Ok(ConfigSecret::new(text)),
        false => Err(format!(
            "must be {ADMIN_KEY_CHARS_MIN} to {ADMIN_KEY_CHARS_MAX} printable ASCII characters, with no space at either end; \
             make one with: openssl rand -hex 32"
        )),
    })
}

pub(super) fn read_secret_key(layers: &mut ConfigLayers) -> Option<Option<ConfigSecret>> {
    layers.take_optional("secret_key", secret_key)
}

/// Reads `secret_key_previous`: one key, or several with commas between them.
pub(super) fn read_previous_keys(layers: &mut ConfigLayers) -> Option<Vec<ConfigSecret>> {
    let keys = layers.take_optional("secret_key_previous", |text| {
        let keys: Vec<&str> = text.split(',').map(str::trim).collect();
        match keys.len() {
            0..=PREVIOUS_KEYS_MAX => keys.into_iter().map(secret_key).collect(),
            many => {
                Err(format!("has {many} keys; {PREVIOUS_KEYS_MAX} are the most, so leave out the oldest"))
            }
        }
    });
    keys.map(Option::unwrap_or_default)
}

fn secret_key(text: &str) -> Result<ConfigSecret, String> {
    match BASE64_STANDARD.decode(text) {
        Ok(bytes) if bytes.len() == SECRET_KEY_BYTES => Ok(ConfigSecret::new(text)),
        Ok(_) | Err(_) => Err(format!(
            "must be {SECRET_KEY_BYTES} bytes in standard base64; make one with: openssl rand -base64 32"
        )),
    }
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
        let secret = ConfigSecret::new("correct horse");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.expose(), "correct horse");
    }

    #[test]
    fn several_previous_keys_are_read_in_their_order() {
        let read = |text: &str| {
            let env = [("POSTWAY_SECRET_KEY_PREVIOUS".into(), text.into())];
            crate::config::load_from(None, env).map(|loaded| loaded.config.secret_key_previous)
        };
        let key = |byte: u8| BASE64_STANDARD.encode([byte; SECRET_KEY_BYTES]);
        let keys = read(&format!("{}, {}", key(1), key(2))).unwrap();
        assert_eq!(keys.iter().map(ConfigSecret::expose).collect::<Vec<_>>(), [key(1), key(2)]);
        assert!(read(&format!("{},short", key(1))).is_err());
        let many = vec![key(1); PREVIOUS_KEYS_MAX + 1].join(",");
        assert!(read(&many).unwrap_err().to_string().contains("leave out the oldest"));
    }
}
