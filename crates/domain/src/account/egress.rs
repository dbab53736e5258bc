//! The way that an account's connections take out of this machine: through a proxy, from one of its
//! addresses.

use serde::{Deserialize, Serialize};

use crate::identity::{
    id::{AccountId, TenantId},
    secret::{SealedSecret, SecretError, SecretKey},
};

/// The longest URL of a proxy, in characters.
pub const PROXY_CHARS_MAX: usize = 600;
/// The longest password of a proxy: SOCKS5 has one octet for its length.
pub const PROXY_PASSWORD_BYTES_MAX: usize = 255;

/// The proxy of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxySetting {
    /// Its URL without password: `socks5://user@host:port` or `http://host:port`.
    pub url: String,
    /// The password of its user, encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SealedSecret>,
}

impl ProxySetting {
    /// A proxy without a password.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), password: None }
    }

    /// The context that the password of an account's proxy is sealed for.
    pub fn account_context(tenant: &TenantId, id: &AccountId) -> String {
        format!("account/{tenant}/{id}/proxy")
    }

    /// Its password, if it has one.
    pub fn open_password(&self, key: &SecretKey, context: &str) -> Result<Option<String>, SecretError> {
        self.password.as_ref().map(|sealed| key.open(context, sealed)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_stored_with_its_password_sealed() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let (tenant, id) = ("acme".parse().unwrap(), "relay".parse().unwrap());
        let context = ProxySetting::account_context(&tenant, &id);
        let sealed = key.seal(&context, "hunter2").unwrap();
        let proxy = ProxySetting { password: Some(sealed), ..ProxySetting::new("socks5://bob@proxy:1080") };
        let stored = serde_json::to_string(&proxy).unwrap();
        assert!(!stored.contains("hunter2"));
        let again: ProxySetting = serde_json::from_str(&stored).unwrap();
        assert_eq!(again.open_password(&key, &context).unwrap().as_deref(), Some("hunter2"));
        assert!(again.open_password(&key, "account/other/relay/proxy").is_err());
        let bare: ProxySetting = serde_json::from_str(r#"{"url":"http://proxy"}"#).unwrap();
        assert_eq!((bare.open_password(&key, &context), bare), (Ok(None), ProxySetting::new("http://proxy")));
    }
}
