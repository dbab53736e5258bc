//! `/v1/domains`: the domains that a tenant sends from, and what DNS says about each.
//!
//! They are those with signing keys, the one that bounces come back to, and any that was checked or that others
//! report about. A list shows what the last check found; a check asks DNS now; `report` sums up what reports
//! say.

pub(crate) mod check;
pub(crate) mod report;
mod report_view;
mod view;

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{
    TenantId,
    address::{domain_to_ascii, domain_to_unicode},
};
use postway_store::record::{ChangeResult, DirectoryChange, DomainCheckRecord};

pub(crate) use self::view::{SendingDomainList, SendingDomainView};
use crate::{
    auth::{Manager, Reader},
    http::{error::ApiError, pagination::ListPart, request_id::RequestId, resource::path_parameter},
    state::{AppState, SharedState},
};

/// The longest name that DNS knows.
const NAME_BYTES_MAX: usize = 253;

/// The domain that `{domain}` in the path names, in the stored form.
pub(crate) struct NamedDomain(String);

path_parameter!(NamedDomain, "domain", |given| {
    let domain = normal_domain(given);
    match is_domain(&domain) {
        true => Ok(NamedDomain(domain)),
        false => Err(no_domain(given)),
    }
});

fn no_domain(given: &str) -> ApiError {
    let shown: String = given.chars().take(NAME_BYTES_MAX).collect();
    ApiError::not_found(format!(
        "there is no domain `{shown}`; check it with POST /v1/domains/{{domain}}/check"
    ))
}

/// A domain as it is stored: in lower case, with A-labels. What is no domain stays as it is.
pub(crate) fn normal_domain(domain: &str) -> String {
    let domain = domain.trim().trim_end_matches('.').to_lowercase();
    domain_to_ascii(&domain).unwrap_or(domain)
}

fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(good)
    };
    name.len() <= NAME_BYTES_MAX && name.contains('.') && name.split('.').all(is_label)
}

/// Every domain of a tenant with what it is for, by name.
async fn all(app: &AppState, tenant: &TenantId) -> Result<Vec<SendingDomainView>, ApiError> {
    let mut domains: BTreeMap<String, SendingDomainView> = BTreeMap::new();
    for key in app.store.dkim_keys(Some(tenant), None).await?.iter().filter(|key| key.active) {
        let entry = domains.entry(key.domain.clone());
        entry.or_insert_with(|| SendingDomainView::unchecked(&key.domain)).signs = true;
    }
    let settings = app.store.tenant(tenant).await?.map(|tenant| tenant.settings);
    if let Some(bounces) = settings.and_then(|settings| settings.bounce_domain) {
        let domain = normal_domain(&bounces);
        let entry = domains.entry(domain.clone());
        entry.or_insert_with(|| SendingDomainView::unchecked(&domain)).takes_bounces = true;
    }
    for check in app.store.domain_checks(tenant, DomainCheckRecord::DOMAINS_MAX).await? {
        let entry = domains.entry(check.domain.clone());
        entry.or_insert_with(|| SendingDomainView::unchecked(&check.domain)).set_check(&check);
    }
    for reported in app.store.reported_domains(tenant, DomainCheckRecord::DOMAINS_MAX).await? {
        let entry = domains.entry(reported.domain.clone());
        let view = entry.or_insert_with(|| SendingDomainView::unchecked(&reported.domain));
        view.reported_at = Some(reported.received_at);
    }
    Ok(domains.into_values().collect())
}

/// Refuses a domain that the tenant does not use.
async fn find(app: &AppState, tenant: &TenantId, domain: &str) -> Result<(), ApiError> {
    let is_known = all(app, tenant).await?.iter().any(|one| one.domain == domain);
    if is_known { Ok(()) } else { Err(no_domain(domain)) }
}

/// List domains
///
/// The domains that you send from: those with signing keys, the one that bounces come back to, and those that
/// you had checked or that others report about. Each with what the last check of its DNS found.
#[utoipa::path(
    get,
    path = "/v1/domains",
    operation_id = "listDomains",
    tag = "signing keys",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "By name", body = SendingDomainList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<SendingDomainList>, ApiError> {
    let domains = all(&app, &caller.tenant).await?;
    let (data, next_cursor) = part.select(domains, |domain| domain.domain.clone())?;
    Ok(Json(SendingDomainList { data, next_cursor }))
}

/// Check a domain
///
/// Asks DNS now for SPF, DKIM, DMARC and MX, and whether MTA-STS and TLS-RPT are announced, and remembers
/// what was found. A domain that only takes bounces is asked for its MX. The check is repeated every six
/// hours from then on.
#[utoipa::path(
    post,
    path = "/v1/domains/{domain}/check",
    operation_id = "checkDomain",
    tag = "signing keys",
    params(("domain" = String, Path, description = "The domain")),
    responses((status = 200, description = "What was found", body = SendingDomainView))
)]
pub(crate) async fn check(
    State(app): State<SharedState>,
    caller: Manager,
    NamedDomain(domain): NamedDomain,
) -> Result<Json<SendingDomainView>, ApiError> {
    let tenant = &caller.tenant;
    let known = all(&app, tenant).await?;
    let is_known = known.iter().any(|one| one.domain == domain);
    if !is_known && known.len() >= DomainCheckRecord::DOMAINS_MAX as usize {
        return Err(ApiError::conflict(format!(
            "{} domains are checked already; delete one that you do not send from",
            DomainCheckRecord::DOMAINS_MAX
        )));
    }
    let busy = || ApiError::busy("too many domains are being checked at once; nothing was done, try again");
    let _turn = app.domains.turn(tenant).await.ok_or_else(busy)?;
    let check = app.domains.check(tenant, &domain).await?;
    let mut view = known
        .into_iter()
        .find(|one| one.domain == domain)
        .unwrap_or_else(|| SendingDomainView::unchecked(&domain));
    view.set_check(&check);
    Ok(Json(view))
}

/// Forget a domain
///
/// Removes what its checks found. A domain with signing keys, and the one that bounces come back to, stay in
/// the list.
#[utoipa::path(
    delete,
    path = "/v1/domains/{domain}",
    operation_id = "deleteDomain",
    tag = "signing keys",
    params(("domain" = String, Path, description = "The domain")),
    responses((status = 204, description = "Forgotten"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedDomain(domain): NamedDomain,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "domain.delete", &domain, &request_id, None);
    let change = DirectoryChange::DeleteDomainCheck(tenant.clone(), domain.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_domain(&domain)),
    }
}

/// A domain in Unicode, if that differs.
fn unicode(domain: &str) -> Option<String> {
    domain_to_unicode(domain)
}
