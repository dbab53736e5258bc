//! API keys for listeners other than HTTP: the same keys, cache and rules.

use std::{net::IpAddr, time::Duration};

use postway_domain::{ApiKey, KeyScope, TenantId};
use postway_intake::smtp::AdmittedSender;
use postway_store::StoreError;

use super::{DEFAULT_TENANT, key_cache::KeyLookupError};
use crate::{http::origin::RequestOrigin, state::SharedState};

/// Checks who may hand over mail.
#[derive(Clone)]
pub struct KeyCheck(pub(crate) SharedState);

/// Why a key was refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyDenied {
    /// The key is unknown or not allowed; the text is for its holder.
    #[error("{0}")]
    Refused(String),
    /// The caller's address has sent too many wrong keys and must wait this long.
    #[error("too many wrong keys came from your address: try again in a minute")]
    TooManyWrong(Duration),
    /// The store does not answer.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

impl KeyCheck {
    /// The tenant that a client at `peer` sends for with this key: the key's own tenant, or for the admin key
    /// the one that `tenant` names, `default` if that is empty.
    pub async fn sender(&self, tenant: &str, key: &[u8], peer: IpAddr) -> Result<AdmittedSender, KeyDenied> {
        let app = &self.0;
        let refused = |why: String| Err(KeyDenied::Refused(why));
        if app.admin_key.opens(key) {
            let name = if tenant.is_empty() { DEFAULT_TENANT } else { tenant };
            return match name.parse::<TenantId>() {
                Ok(id) if app.knows_tenant(&id).await? => Ok(AdmittedSender::unbound(id)),
                _ => refused("with the admin key the user name must be a tenant that exists".to_owned()),
            };
        }
        let key = app.key_cache.valid_key(key, RequestOrigin::direct(peer).client(), app).await?;
        may_send(key.as_deref(), peer)
    }

    /// Admits the tenant without a key, for mail from a trusted network, if the tenant exists.
    pub async fn tenant_without_key(&self, tenant: &TenantId) -> Result<AdmittedSender, KeyDenied> {
        match self.0.knows_tenant(tenant).await? {
            true => Ok(AdmittedSender::unbound(tenant.clone())),
            false => Err(KeyDenied::Refused(format!("there is no tenant `{tenant}` (smtp.open_networks)"))),
        }
    }
}

/// The tenant that a client at `peer` with this key sends for.
pub(super) fn may_send(key: Option<&ApiKey>, peer: IpAddr) -> Result<AdmittedSender, KeyDenied> {
    let refused = |why: &str| Err(KeyDenied::Refused(why.to_owned()));
    match key {
        None => refused("this key does not open: use one that is valid"),
        Some(key) if !key.allows(Some(peer)) => {
            refused("this key may not be used from your address (its allow_ips)")
        }
        Some(key) if !key.scopes.contains(&KeyScope::Send) => {
            refused("this key lacks the scope `send`: use one that has it")
        }
        Some(key) => {
            Ok(AdmittedSender { tenant: key.tenant.clone(), restrictions: key.restrictions.clone() })
        }
    }
}

impl From<KeyLookupError> for KeyDenied {
    fn from(unread: KeyLookupError) -> Self {
        match unread {
            KeyLookupError::TooManyWrong(wait) => Self::TooManyWrong(wait),
            KeyLookupError::Unavailable(error) => Self::Unavailable(error),
        }
    }
}
