//! A tenant's tokens and passwords: one JSON object, sealed for this tenant.

use postway_domain::{Tenant, TenantId, secret::SealedSecret};
use serde::{Deserialize, Serialize};

use super::edit::RemoteSecretEdit;
use crate::{http::error::ApiError, state::AppState};

/// The sealed content. Never printed.
#[derive(Default, Serialize, Deserialize)]
struct StoredTenantSecrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_sync: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attachment_endpoint: Option<String>,
}

/// The sealed secrets after a change; the same if none of them changes.
pub(super) fn reseal(
    app: &AppState,
    tenant: &TenantId,
    stored: Option<SealedSecret>,
    client_sync: RemoteSecretEdit,
    attachment_endpoint: RemoteSecretEdit,
) -> Result<Option<SealedSecret>, ApiError> {
    let stays = |new: &RemoteSecretEdit| match new {
        RemoteSecretEdit::Keep => true,
        RemoteSecretEdit::Remove => stored.is_none(),
        RemoteSecretEdit::Set(_) => false,
    };
    if stays(&client_sync) && stays(&attachment_endpoint) {
        return Ok(stored);
    }
    let place = Tenant::sealing_context(tenant);
    let mut secrets = match &stored {
        None => StoredTenantSecrets::default(),
        Some(sealed) => {
            let text = app.secret_key.open(&place, sealed).map_err(ApiError::internal)?;
            // The parser's error may quote the secrets.
            serde_json::from_str(&text).map_err(|_| ApiError::internal("a tenant's secrets are not JSON"))?
        }
    };
    for (kept, new) in
        [(&mut secrets.client_sync, client_sync), (&mut secrets.attachment_endpoint, attachment_endpoint)]
    {
        match new {
            RemoteSecretEdit::Keep => {}
            RemoteSecretEdit::Remove => *kept = None,
            RemoteSecretEdit::Set(secret) => *kept = Some(secret),
        }
    }
    if secrets.client_sync.is_none() && secrets.attachment_endpoint.is_none() {
        return Ok(None);
    }
    let text = serde_json::to_string(&secrets)
        .map_err(|_| ApiError::internal("a tenant's secrets do not serialize"))?;
    app.secret_key.seal(&place, &text).map(Some).map_err(ApiError::internal)
}
