//! `/v1/templates`: mail templates, stored in versions.
//!
//! A version never changes: a change creates the next version, so a mail can be traced to the exact text it
//! was made from. The latest version is used if none is named. A template is checked before it is stored: its
//! syntax, and that every template it extends or includes exists.
//!
//! A template in a language is a template of its own, whose name ends with the language: `welcome.de-AT`.

pub(crate) mod preview;
pub(crate) mod read;
mod schema;
pub(crate) mod test_send;
mod view;
pub(crate) mod write;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use postway_domain::{MailLocale, Template, TemplateName, TenantId};
use postway_store::record::{ChangeResult, DirectoryChange};

use self::view::{TemplateList, TemplateSummary, TemplateView};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// `/v1/templates/preview` is a call, so a template cannot have this name.
const RESERVED: &str = "preview";

/// The template that `{name}` in the path names. A text that cannot be a name is 404.
pub(crate) struct NamedTemplate(pub(crate) TemplateName);

path_parameter!(NamedTemplate, "name", NamedTemplate::parse);

impl NamedTemplate {
    /// Parses the name.
    pub(crate) fn parse(given: &str) -> Result<Self, ApiError> {
        given.parse().map(Self).map_err(|_| no_template(given, None))
    }
}

fn no_template(given: &str, version: Option<i64>) -> ApiError {
    let shown: String = given.chars().take(TemplateName::BYTES_MAX).collect();
    ApiError::not_found(match version {
        Some(version) => format!("there is no template `{shown}` in version {version}"),
        None => format!("there is no template `{shown}`"),
    })
}

/// The template in this version, or in its latest.
pub(crate) async fn find(
    app: &AppState,
    tenant: &TenantId,
    name: &TemplateName,
    version: Option<i64>,
) -> Result<Template, ApiError> {
    let found = app.store.template(tenant, name, version).await?;
    found.ok_or_else(|| no_template(name.as_str(), version))
}

/// The template in the language that a message with this locale would get, in this version or its latest.
async fn chosen(
    app: &AppState,
    tenant: &TenantId,
    name: &TemplateName,
    version: Option<i64>,
    locale: Option<&MailLocale>,
) -> Result<Template, ApiError> {
    let default = app.store.tenant(tenant).await?.and_then(|tenant| tenant.settings.locale);
    for locale in MailLocale::chain(locale, default.as_ref()) {
        let Some(localised) = name.in_locale(&locale) else { continue };
        if let Some(latest) = app.store.template(tenant, &localised, None).await? {
            return match version {
                Some(version) if version != latest.version => {
                    find(app, tenant, &localised, Some(version)).await
                }
                _ => Ok(latest),
            };
        }
    }
    find(app, tenant, name, version).await
}

fn parse_version(text: &str) -> Result<i64, &'static str> {
    text.parse().ok().filter(|version| *version >= 1).ok_or("must be a version: a whole number from 1")
}

/// List templates
///
/// The latest version of each, without html and text.
#[utoipa::path(
    get,
    path = "/v1/templates",
    operation_id = "listTemplates",
    tag = "templates",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by name", body = TemplateList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<TemplateList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after: Option<TemplateName> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let found = app.store.templates(&caller.tenant, after.as_ref(), limit + 1).await?;
    Ok(Json(page_of(found, limit, |last| pagination::write_cursor(&last.name))))
}

/// List a template's versions
///
/// The latest first, without html and text. Beyond 1,000 versions the oldest are removed.
#[utoipa::path(
    get,
    path = "/v1/templates/{name}/versions",
    operation_id = "listTemplateVersions",
    tag = "templates",
    params(
        ("name" = String, Path, description = "The template"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, the latest first", body = TemplateList))
)]
pub(crate) async fn versions(
    State(app): State<SharedState>,
    caller: Reader,
    NamedTemplate(name): NamedTemplate,
    uri: Uri,
) -> Result<Json<TemplateList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before: Option<i64> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let found = app.store.template_versions(&caller.tenant, &name, before, limit + 1).await?;
    if found.is_empty() && before.is_none() {
        return Err(no_template(name.as_str(), None));
    }
    Ok(Json(page_of(found, limit, |last| pagination::write_cursor(&last.version))))
}

/// A page of what was read; one item more than `limit` means that there is another page.
fn page_of(mut found: Vec<Template>, limit: u32, cursor: impl Fn(&Template) -> String) -> TemplateList {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(cursor);
    TemplateList { data: found.into_iter().map(TemplateSummary::from).collect(), next_cursor }
}

/// Show a template
///
/// The sources of the latest version, or of the requested one.
#[utoipa::path(
    get,
    path = "/v1/templates/{name}",
    operation_id = "getTemplate",
    tag = "templates",
    params(
        ("name" = String, Path, description = "The template"),
        ("version" = Option<i64>, Query, description = "The version; the latest when absent"),
    ),
    responses((status = 200, description = "The template with its sources", body = TemplateView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedTemplate(name): NamedTemplate,
    uri: Uri,
) -> Result<Json<TemplateView>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let version = query.parse("version", parse_version);
    query.finish()?;
    find(&app, &caller.tenant, &name, version).await.map(|template| Json(template.into()))
}

/// Delete a template
///
/// All its versions. Messages accepted with it that are not composed yet become `invalid`.
#[utoipa::path(
    delete,
    path = "/v1/templates/{name}",
    operation_id = "deleteTemplate",
    tag = "templates",
    params(("name" = String, Path, description = "The template")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedTemplate(name): NamedTemplate,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "template.delete", name.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteTemplate(tenant.clone(), name.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, template = %name, "template deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(no_template(name.as_str(), None)),
    }
}
