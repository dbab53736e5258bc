//! `/v1/scoped-suppressions`: suppressions that are narrower or wider than the list of `/v1/suppressions`: of one stream, of a
//! pattern of addresses, or of the whole installation.

use std::str::FromStr;

use axum::{
    Json,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, Uri, request::Parts},
};
use postway_domain::{Time, id::StreamId, suppression::SuppressionPattern};
use postway_store::record::{Changed, DirectoryChange, ScopeFilter, ScopedSuppression, SuppressionScope};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::read::SuppressionTerms;
use crate::{
    admin::erase::digest,
    auth::{Actor, Manager, Reader},
    http::{
        body,
        error::ApiError,
        json_fields::Fields,
        pagination::{self, Paging},
        query::{Parameters, flag},
        request_id::RequestId,
        schema_form::When,
    },
    state::{App, Shared},
};

/// Addresses that get no mail of some kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScopedSuppression)]
pub(crate) struct ScopedView {
    /// An address, or a pattern with a star for all local parts, all subdomains or all domains.
    #[schema(example = "*@example.net")]
    pattern: String,
    /// The stream whose mail they do not get; mail of all streams, and of none, when null.
    stream: Option<String>,
    /// Whether it holds for every tenant.
    installation: bool,
    /// `hard_bounce`, `complaint`, `manual` or `unsubscribe`.
    #[schema(example = "manual")]
    reason: &'static str,
    /// More about it.
    note: Option<String>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Until when; for ever when null.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

impl From<ScopedSuppression> for ScopedView {
    fn from(one: ScopedSuppression) -> Self {
        Self {
            pattern: one.scope.pattern,
            stream: one.scope.stream.map(|stream| stream.to_string()),
            installation: one.scope.tenant.is_none(),
            reason: one.reason.as_str(),
            note: one.note,
            created_at: one.created_at,
            expires_at: one.expires_at,
        }
    }
}

/// A page of scoped suppressions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScopedSuppressionList {
    /// By pattern and stream.
    data: Vec<ScopedView>,
    /// Give this as `cursor` for the next; null at the end.
    next_cursor: Option<String>,
}

/// What is not to be sent. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScopedSuppressionRequest {
    /// An address, `*@example.net`, `*@*.example.net` or `postmaster@*`.
    #[schema(example = "*@example.net")]
    pattern: Option<String>,
    /// Only mail of this stream.
    #[schema(example = "newsletter")]
    stream: Option<String>,
    /// Mail of every tenant; for the admin key.
    installation: Option<bool>,
    /// `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`.
    #[schema(example = "manual")]
    reason: Option<String>,
    /// More about it, at most 500 characters.
    note: Option<String>,
    /// Until when, as RFC 3339 or Unix seconds; for ever when absent.
    #[schema(inline)]
    expires_at: Option<When>,
}

/// `{pattern}` in a path, in the form that is stored.
pub(crate) struct NamedPattern(SuppressionPattern);

impl<S: Send + Sync> FromRequestParts<S> for NamedPattern {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(given) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| {
            ApiError::malformed("the pattern in the path cannot be read: use percent-encoded UTF-8")
        })?;
        given.parse().map(Self).map_err(|error| ApiError::field("pattern", format!("{error}")))
    }
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScopePosition {
    pattern: String,
    stream: Option<StreamId>,
}

impl std::fmt::Display for ScopePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A stream's id has no space.
        write!(f, "{} {}", self.stream.as_ref().map_or("", |stream| stream.as_str()), self.pattern)
    }
}

impl FromStr for ScopePosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, pattern) = text.split_once(' ').ok_or(())?;
        let stream = Some(stream).filter(|stream| !stream.is_empty()).map(str::parse).transpose();
        Ok(Self { pattern: pattern.to_owned(), stream: stream.map_err(drop)? })
    }
}

/// Only the admin key speaks for every tenant.
fn check_installation(actor: &Actor, installation: bool) -> Result<(), ApiError> {
    match installation && !actor.is_admin() {
        true => Err(ApiError::forbidden("suppressions of the whole installation need the admin key")),
        false => Ok(()),
    }
}

/// As the audit log names it: an address by its digest, since the log outlives what is erased.
fn audited(app: &App, caller: &Manager, scope: &SuppressionScope) -> String {
    match scope.pattern.parse::<SuppressionPattern>() {
        Ok(pattern) if !pattern.is_address() => scope.pattern.clone(),
        _ => digest(&app.secret_key, &caller.tenant, &scope.pattern),
    }
}

/// Suppress a part of the mail
///
/// To an address or a pattern of addresses, of one stream or of all. One that is there already is renewed. For an address and all
/// mail of your tenant use `POST /v1/suppressions`.
#[utoipa::path(
    post,
    path = "/v1/scoped-suppressions",
    operation_id = "createScopedSuppression",
    tag = "suppressions",
    request_body = ScopedSuppressionRequest,
    responses((status = 201, description = "They get no such mail from now on", body = ScopedView))
)]
pub(crate) async fn create(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<ScopedView>), ApiError> {
    let (body, now) = (body::json_object(request).await?, app.clock.now());
    let mut wrong = Vec::new();
    let mut fields = Fields::of(body, &mut wrong);
    fields.take("created_at");
    let pattern: Option<SuppressionPattern> = fields.parsed("pattern");
    let stream: Option<StreamId> = fields.parsed("stream");
    let installation = fields.read("installation", "must be true or false").unwrap_or(false);
    let terms = SuppressionTerms::read(&mut fields, now);
    fields.finish("is not a field of a scoped suppression");
    if pattern.is_none() && !wrong.iter().any(|fault| fault.field == "pattern") {
        wrong.push(crate::http::error::FieldError::new("pattern", "is needed: an address or a pattern"));
    }
    let Some(pattern) = pattern.filter(|_| wrong.is_empty()) else { return Err(ApiError::invalid(wrong)) };
    check_installation(&caller.actor, installation)?;
    if pattern.is_address() && stream.is_none() && !installation {
        let message = "is an address for all mail of the tenant: use POST /v1/suppressions";
        return Err(ApiError::field("pattern", message));
    }
    let tenant = (!installation).then(|| caller.tenant.clone());
    let scope = SuppressionScope { tenant, pattern: pattern.as_str().to_owned(), stream };
    let one = ScopedSuppression {
        reason: terms.reason,
        note: terms.note,
        created_at: now,
        expires_at: terms.expires_at,
        scope,
    };
    let target = audited(&app, &caller, &one.scope);
    let stream = one.scope.stream.as_ref().map(|stream| stream.as_str());
    let detail = json!({"reason": one.reason.as_str(), "stream": stream, "installation": installation});
    let tenant = one.scope.tenant.as_ref();
    let action = "scoped_suppression.create";
    let entry = app.audit(&caller.actor, tenant, action, target, &request_id, Some(detail));
    app.store.change(DirectoryChange::SuppressScoped(vec![one.clone()]), Some(entry)).await?;
    Ok((StatusCode::CREATED, Json(one.into())))
}

/// List scoped suppressions
///
/// Those of your tenant, or of the whole installation; those whose time is over left out.
#[utoipa::path(
    get,
    path = "/v1/scoped-suppressions",
    operation_id = "listScopedSuppressions",
    tag = "suppressions",
    params(
        ("stream" = Option<String>, Query, description = "Only those of this stream"),
        ("installation" = Option<bool>, Query, description = "Those that hold for every tenant; for the admin key"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "One page, by pattern and stream", body = ScopedSuppressionList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<ScopedSuppressionList>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let stream = query.parse("stream", str::parse::<StreamId>);
    let installation = query.parse("installation", flag).unwrap_or(false);
    let Paging { limit, cursor } = Paging::take(&mut query);
    query.finish()?;
    check_installation(&caller.actor, installation)?;
    let after: Option<ScopePosition> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let filter = ScopeFilter { tenant: (!installation).then(|| caller.tenant.clone()), stream };
    let (filter, app, now) = (&filter, &app, app.clock.now());
    let read = |after: Option<ScopePosition>, limit| async move {
        let place = |ScopePosition { pattern, stream }| SuppressionScope {
            tenant: filter.tenant.clone(),
            pattern,
            stream,
        };
        app.store.scoped_suppressions(filter, after.map(place).as_ref(), limit).await
    };
    let position = |one: &ScopedSuppression| ScopePosition {
        pattern: one.scope.pattern.clone(),
        stream: one.scope.stream.clone(),
    };
    let holds = |one: &ScopedSuppression| one.expires_at.is_none_or(|at| at > now);
    let (found, next) = pagination::filled(after, limit, read, position, holds).await?;
    let data = found.into_iter().map(ScopedView::from).collect();
    Ok(Json(ScopedSuppressionList { data, next_cursor: next.as_ref().map(pagination::write_cursor) }))
}

/// Stop suppressing a part of the mail
///
/// 404 where there is no such suppression: pattern, stream and whether it holds for every tenant must be the same.
#[utoipa::path(
    delete,
    path = "/v1/scoped-suppressions/{pattern}",
    operation_id = "deleteScopedSuppression",
    tag = "suppressions",
    params(
        ("pattern" = String, Path, description = "The address or the pattern"),
        ("stream" = Option<String>, Query, description = "The stream, where it is of one"),
        ("installation" = Option<bool>, Query, description = "Whether it holds for every tenant; for the admin key"),
    ),
    responses((status = 204, description = "Such mail is sent again"))
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    NamedPattern(pattern): NamedPattern,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let stream = query.parse("stream", str::parse::<StreamId>);
    let installation = query.parse("installation", flag).unwrap_or(false);
    query.finish()?;
    check_installation(&caller.actor, installation)?;
    let tenant = (!installation).then(|| caller.tenant.clone());
    let scope = SuppressionScope { tenant: tenant.clone(), pattern: pattern.as_str().to_owned(), stream };
    let target = audited(&app, &caller, &scope);
    let action = "scoped_suppression.delete";
    let entry = app.audit(&caller.actor, tenant.as_ref(), action, target, &request_id, None);
    match app.store.change(DirectoryChange::UnsuppressScoped(vec![scope]), Some(entry)).await? {
        Changed::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(ApiError::not_found("there is no such suppression; GET /v1/scoped-suppressions lists them")),
    }
}
