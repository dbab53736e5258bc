//! `POST /v1/erase`: removes an address from a tenant's data, as its owner may demand.
//!
//! Counts and statistics stay. The audit log has a keyed digest instead of the address: with the address and
//! the gateway's secret key one can verify that it was erased, but the digest does not reveal it.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{EmailAddress, Tenant, TenantId, secret::SecretKey};
use postway_store::record::{DirectoryChange, ErasureCounts, MessageTombstone};
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
        json_fields::JsonFieldReader,
        request_id::RequestId,
    },
    state::SharedState,
};

/// The address to erase.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EraseRequest {
    /// The address.
    #[schema(example = "ada@example.net")]
    address: String,
}

/// The result of an erasure.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Erasure)]
pub(crate) struct ErasureResult {
    /// Messages to this address only, which were removed.
    removed: i64,
    /// Messages to others as well, from which the address, the subject and the bodies were removed.
    redacted: i64,
    /// Messages that have not ended and were left: call again once they have.
    waiting: i64,
    /// Whether there may be more messages that have ended: call again.
    more: bool,
}

/// Erase an address
///
/// Removes it from the messages that have ended. Entries of the suppression list and of the recipient
/// directory stay: delete them separately. A call runs for at most 20 seconds and then says that there is
/// `more`.
#[utoipa::path(
    post,
    path = "/v1/erase",
    operation_id = "eraseAddress",
    tag = "operations",
    request_body = EraseRequest,
    responses((status = 200, description = "The result", body = ErasureResult))
)]
pub(crate) async fn erase(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<ErasureResult>, ApiError> {
    let address = read(body::json_object(request).await?).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    // Written first, so that the request is recorded even if the work is interrupted.
    let digest = digest(&app.secret_key, tenant, &address);
    let entry = app.audit(&caller.actor, Some(tenant), "address.erase", digest.as_str(), &request_id, None);
    // Older entries of the log, from before it had digests, contain the address in lower case.
    let mut entry = Some(entry);
    for target in EmailAddress::spellings_of(&address.to_lowercase()) {
        let digest = digest.clone();
        let redact = DirectoryChange::RedactAudit { tenant: tenant.clone(), target, digest };
        app.store.change(redact, entry.take()).await?;
    }

    let deadline = Instant::now() + TIME_MAX;
    let mut done = ErasureResult::default();
    loop {
        let mut slice = ErasureCounts::default();
        // Earlier versions stored the domain in Unicode.
        for spelling in EmailAddress::spellings_of(&address) {
            let erased = app.store.erase(tenant, &spelling, app.clock.now(), SLICE).await?;
            slice.removed += erased.removed;
            slice.redacted += erased.redacted;
            slice.waiting += erased.waiting;
        }
        let ErasureCounts { removed, redacted, waiting } = slice;
        done.removed += removed;
        done.redacted += redacted;
        done.waiting = waiting;
        done.more = removed + redacted > 0;
        if !done.more || Instant::now() >= deadline {
            let ErasureResult { removed, redacted, waiting, more } = done;
            tracing::info!(%tenant, removed, redacted, waiting, more, "an address was erased on request");
            return Ok(Json(done));
        }
    }
}

fn read(body: Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
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

/// The digest that replaces an address in the audit log and in the traces of removed messages. The same
/// address has the same digest, so that entries about it can be matched.
pub(crate) fn digest(key: &SecretKey, tenant: &TenantId, address: &str) -> String {
    let digest = MessageTombstone::digest(&key.derive(Tenant::TRACE_KEY_LABEL), tenant, address);
    let hex = digest.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("hmac-sha256:".to_owned()).chain(hex).collect()
}
