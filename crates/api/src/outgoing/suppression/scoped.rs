//! `/v1/scoped-suppressions`: suppressions that are narrower or wider than those of `/v1/suppressions`: of
//! one stream, of a pattern of addresses, or of the complete installation.

use std::str::FromStr;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri},
};
use postway_domain::{Time, id::StreamId, suppression::SuppressionPattern};
use postway_store::record::{
    ChangeResult, DirectoryChange, ScopeFilter, ScopedSuppression, SuppressionScope,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::read::SuppressionTerms;
use crate::{
    admin::erase::digest,
    auth::{CallerActor, Manager, Reader},
    http::{
        body,
        error::ApiError,
        json_fields::JsonFieldReader,
        pagination::{self, PageRequest},
        query::{QueryParameters, flag},
        request_id::RequestId,
        resource::path_parameter,
        schema_form::When,
    },
    state::{AppState, SharedState},
};

/// A suppression of a part of the mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScopedSuppression)]
pub(crate) struct ScopedSuppressionView {
    /// An address, or a pattern with a star for all local parts, all subdomains or all domains.
    #[schema(example = "*@example.net")]
    pattern: String,
    /// The stream whose mail is suppressed; null means all mail.
    stream: Option<String>,
    /// Whether it applies to every tenant.
    installation: bool,
    /// `hard_bounce`, `complaint`, `manual` or `unsubscribe`.
    #[schema(example = "manual")]
    reason: &'static str,
    /// A note.
    note: Option<String>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it expires; null means never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

impl From<ScopedSuppression> for ScopedSuppressionView {
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
    /// The suppressions, by pattern and stream.
    data: Vec<ScopedSuppressionView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The mail to suppress. Unknown fields are refused.
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
    /// A note, at most 500 characters.
    note: Option<String>,
    /// When it expires, as RFC 3339 or Unix seconds; never when absent.
    #[schema(inline)]
    expires_at: Option<When>,
}

/// The pattern that `{pattern}` in the path names, in the stored form.
pub(crate) struct NamedPattern(SuppressionPattern);

path_parameter!(NamedPattern, "pattern", |given| given
    .parse()
    .map(NamedPattern)
    .map_err(|error| ApiError::field("pattern", format!("{error}"))));

/// The position at which a page ended.
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

/// Only the admin key may act for every tenant.
fn check_installation(actor: &CallerActor, installation: bool) -> Result<(), ApiError> {
    match installation && !actor.is_admin() {
        true => Err(ApiError::forbidden("suppressions of the whole installation need the admin key")),
        false => Ok(()),
    }
}

/// The name in the audit log: an address by its digest, because the log outlives erasure.
fn audited(app: &AppState, caller: &Manager, scope: &SuppressionScope) -> String {
    match scope.pattern.parse::<SuppressionPattern>() {
        Ok(pattern) if !pattern.is_address() => scope.pattern.clone(),
        _ => digest(&app.secret_key, &caller.tenant, &scope.pattern),
    }
}

/// Suppress a part of the mail
///
/// To an address or a pattern of addresses, of one stream or of all. An existing suppression is renewed. To
/// suppress all mail of your tenant to one address, use `POST /v1/suppressions`.
#[utoipa::path(
    post,
    path = "/v1/scoped-suppressions",
    operation_id = "createScopedSuppression",
    tag = "suppressions",
    request_body = ScopedSuppressionRequest,
    responses((status = 201, description = "The suppression", body = ScopedSuppressionView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<ScopedSuppressionView>), ApiError> {
    let (body, now) = (body::json_object(request).await?, app.clock.now());
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
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
/// Those of your tenant, or of the complete installation, without expired ones.
#[utoipa::path(
    get,
    path = "/v1/scoped-suppressions",
    operation_id = "listScopedSuppressions",
    tag = "suppressions",
    params(
        ("stream" = Option<String>, Query, description = "Only those of this stream"),
        ("installation" = Option<bool>, Query, description = "Only those that apply to every tenant; for the admin key"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by pattern and stream", body = ScopedSuppressionList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<ScopedSuppressionList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let stream = query.parse("stream", str::parse::<StreamId>);
    let installation = query.parse("installation", flag).unwrap_or(false);
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
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
    let data = found.into_iter().map(ScopedSuppressionView::from).collect();
    Ok(Json(ScopedSuppressionList { data, next_cursor: next.as_ref().map(pagination::write_cursor) }))
}

/// Stop suppressing a part of the mail
///
/// 404 if there is no such suppression: pattern, stream and `installation` must be the same.
#[utoipa::path(
    delete,
    path = "/v1/scoped-suppressions/{pattern}",
    operation_id = "deleteScopedSuppression",
    tag = "suppressions",
    params(
        ("pattern" = String, Path, description = "The address or the pattern"),
        ("stream" = Option<String>, Query, description = "The stream, if it applies to one"),
        ("installation" = Option<bool>, Query, description = "Whether it applies to every tenant; for the admin key"),
    ),
    responses((status = 204, description = "The suppression is removed"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedPattern(pattern): NamedPattern,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let stream = query.parse("stream", str::parse::<StreamId>);
    let installation = query.parse("installation", flag).unwrap_or(false);
    query.finish()?;
    check_installation(&caller.actor, installation)?;
    let tenant = (!installation).then(|| caller.tenant.clone());
    let scope = SuppressionScope { tenant: tenant.clone(), pattern: pattern.as_str().to_owned(), stream };
    let target = audited(&app, &caller, &scope);
    let action = "scoped_suppression.delete";
    let entry = app.audit(&caller.actor, tenant.as_ref(), action, target, &request_id, None);
    match app
        .store
        .change(DirectoryChange::UnsuppressScoped(vec![scope], app.clock.now()), Some(entry))
        .await?
    {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(ApiError::not_found("there is no such suppression; GET /v1/scoped-suppressions lists them")),
    }
}
