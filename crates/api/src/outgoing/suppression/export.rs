//! `GET /v1/suppressions/export`: the complete list as CSV, in the form that an import reads.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use super::{csv, page_of};
use crate::{
    auth::Reader,
    http::{error::ApiError, pagination},
    state::SharedState,
};

/// Addresses read at a time.
const PAGE: u32 = 500;

/// The columns, in order.
const COLUMNS: [&str; 5] = ["address", "reason", "note", "created_at", "expires_at"];

/// Export suppressed addresses
///
/// The complete list as CSV with the columns `address,reason,note,created_at,expires_at`.
#[utoipa::path(
    get,
    path = "/v1/suppressions/export",
    operation_id = "exportSuppressions",
    tag = "suppressions",
    responses((status = 200, description = "The list", body = String, content_type = "text/csv"))
)]
pub(crate) async fn export(State(app): State<SharedState>, caller: Reader) -> Result<Response, ApiError> {
    let tenant = caller.0.tenant;
    let body = pagination::streamed(None, move |after: Option<String>| {
        let (app, tenant) = (app.clone(), tenant.clone());
        async move {
            let mut lines = Vec::new();
            if after.is_none() {
                csv::write(&mut lines, &COLUMNS);
            }
            let (found, next) = page_of(&app, &tenant, after, PAGE).await?;
            for one in found {
                let (since, until) = (one.created_at.to_string(), one.expires_at.map(|at| at.to_string()));
                let note = one.note.unwrap_or_default();
                let until = until.unwrap_or_default();
                csv::write(&mut lines, &[&one.address, one.reason.as_str(), &note, &since, &until]);
            }
            Ok((lines, next.map(Some)))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"suppressions.csv\""),
    ];
    Ok((headers, body.await?).into_response())
}
