//! A tenant's tokens and passwords: one JSON object, sealed for its tenant.

use postway_domain::{Tenant, TenantId, secret::Sealed};
use serde::{Deserialize, Serialize};

use super::edit::NewSecret;
use crate::{http::error::ApiError, state::App};

/// What is sealed. Never printed.
#[derive(Default, Serialize, Deserialize)]
struct Secrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_sync: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attachment_endpoint: Option<String>,
}

/// The sealed secrets after a change; as they were where nothing of them changes.
pub(super) fn reseal(
    app: &App,
    tenant: &TenantId,
    stored: Option<Sealed>,
    client_sync: NewSecret,
    attachment_endpoint: NewSecret,
) -> Result<Option<Sealed>, ApiError> {
    let stays = |new: &NewSecret| match new {
        NewSecret::Keep => true,
        NewSecret::Remove => stored.is_none(),
        NewSecret::Set(_) => false,
    };
    if stays(&client_sync) && stays(&attachment_endpoint) {
        return Ok(stored);
    }
    let place = Tenant::secret_place(tenant);
    let mut secrets = match &stored {
        None => Secrets::default(),
        Some(sealed) => {
            let text = app.secret_key.open(&place, sealed).map_err(ApiError::internal)?;
            // The parser's words may quote what it read.
            serde_json::from_str(&text).map_err(|_| ApiError::internal("a tenant's secrets are not JSON"))?
        }
    };
    for (kept, new) in
        [(&mut secrets.client_sync, client_sync), (&mut secrets.attachment_endpoint, attachment_endpoint)]
    {
        match new {
            NewSecret::Keep => {}
            NewSecret::Remove => *kept = None,
            NewSecret::Set(secret) => *kept = Some(secret),
        }
    }
    if secrets.client_sync.is_none() && secrets.attachment_endpoint.is_none() {
        return Ok(None);
    }
    let text = serde_json::to_string(&secrets)
        .map_err(|_| ApiError::internal("a tenant's secrets do not serialize"))?;
    app.secret_key.seal(&place, &text).map(Some).map_err(ApiError::internal)
}
