//! `POST /v1/erase`: makes a tenant forget an address, as people may ask for.
//!
//! Counts and statistics stay. The audit log keeps a keyed digest in the address's place: whoever has the address and the
//! gateway's secret key can tell that it was erased, and nobody can tell the address from it.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{EmailAddress, Tenant, TenantId, secret::SecretKey};
use postway_store::record::{DirectoryChange, Erased, Tombstone};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::{
    admin::cleanup::{SLICE, TIME_MAX},
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::Fields,
        request_id::RequestId,
    },
    state::Shared,
};

/// What to forget.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EraseRequest {
    /// The address.
    #[schema(example = "ada@example.net")]
    address: String,
}

/// What was forgotten.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Erasure {
    /// Messages to nobody else, which were removed.
    removed: i64,
    /// Messages to others as well, in which the address, the subject and the bodies were removed.
    redacted: i64,
    /// Messages that are still on their way, and were left: call again once they have ended.
    waiting: i64,
    /// Whether there may be more that have ended: call again.
    more: bool,
}

/// Forget an address
///
/// Removes it from the messages that have ended. Entries of the suppression list and of the directory of recipients stay:
/// delete them on their own. A call goes on for at most 20 seconds and then says that there is `more`.
#[utoipa::path(
    post,
    path = "/v1/erase",
    operation_id = "eraseAddress",
    tag = "operations",
    request_body = EraseRequest,
    responses((status = 200, description = "What was forgotten", body = Erasure))
)]
pub(crate) async fn erase(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Erasure>, ApiError> {
    let address = read(body::json_object(request).await?).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    // Written first: what was asked for is known even if the work is cut off.
    let digest = digest(&app.secret_key, tenant, &address);
    let entry = app.audit(&caller.actor, Some(tenant), "address.erase", digest.as_str(), &request_id, None);
    // Entries from before the log had digests name it as they were given it: in lower case.
    let mut entry = Some(entry);
    for target in EmailAddress::spellings_of(&address.to_lowercase()) {
        let digest = digest.clone();
        let redact = DirectoryChange::RedactAudit { tenant: tenant.clone(), target, digest };
        app.store.change(redact, entry.take()).await?;
    }

    let deadline = Instant::now() + TIME_MAX;
    let mut done = Erasure::default();
    loop {
        let mut slice = Erased::default();
        // What earlier versions took has the domain as people write it.
        for spelling in EmailAddress::spellings_of(&address) {
            let erased = app.store.erase(tenant, &spelling, app.clock.now(), SLICE).await?;
            slice.removed += erased.removed;
            slice.redacted += erased.redacted;
            slice.waiting += erased.waiting;
        }
        let Erased { removed, redacted, waiting } = slice;
        done.removed += removed;
        done.redacted += redacted;
        done.waiting = waiting;
        done.more = removed + redacted > 0;
        if !done.more || Instant::now() >= deadline {
            let Erasure { removed, redacted, waiting, more } = done;
            tracing::info!(%tenant, removed, redacted, waiting, more, "an address was erased on request");
            return Ok(Json(done));
        }
    }
}

fn read(body: Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = Fields::of(body, &mut wrong);
    if !fields.has("address") {
        fields.refuse("address", "is needed: the address to forget");
    }
    let address: Option<EmailAddress> = fields.parsed("address");
    fields.finish("is not a field of this call");
    match address {
        Some(address) if wrong.is_empty() => Ok(address.to_string()),
        _ => Err(wrong),
    }
}

/// What stands for an address that is not kept, as in the traces that removed messages leave. The same address has the
/// same one, so that entries of the audit log about it belong together.
pub(crate) fn digest(key: &SecretKey, tenant: &TenantId, address: &str) -> String {
    let digest = Tombstone::digest(&key.derive(Tenant::TRACE_KEY_LABEL), tenant, address);
    let hex = digest.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("hmac-sha256:".to_owned()).chain(hex).collect()
}
