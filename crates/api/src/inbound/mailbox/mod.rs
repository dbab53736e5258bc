//! `/v1/mailboxes`: IMAP folders that are watched, for rules, bounces and receipts.
//!
//! Passwords and tokens are encrypted before they are stored, and never shown. A mailbox is shown with the
//! result of its last scan: how far it was read, how far behind that is, and what is wrong with it.

pub(crate) mod change;
pub(crate) mod create;
mod edit;
pub(crate) mod pause;
pub(crate) mod probe;
mod schema;
mod secret;
mod view;

use std::collections::HashMap;

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{TenantId, WatchedMailbox, id::MailboxId, mailbox::MailboxSettings};
use postway_store::record::{ChangeResult, DirectoryChange, MailboxKey, MailboxState};

pub(crate) use self::view::{MailboxList, MailboxView};
use crate::{
    auth::{CallerActor, Manager, Reader},
    http::{error::ApiError, pagination::ListPart, request_id::RequestId, resource::path_parameter},
    setting::{callback_url, oauth, proxy::proxy_host},
    state::{AppState, SharedState},
};

/// The mailbox that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedMailbox(MailboxId);

path_parameter!(NamedMailbox, "id", |given| given.parse().map(NamedMailbox).map_err(|_| no_mailbox(given)));

pub(crate) fn no_mailbox(given: &str) -> ApiError {
    let shown: String = given.chars().take(MailboxId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no mailbox `{shown}`"))
}

fn key_of(tenant: &TenantId, id: &MailboxId) -> MailboxKey {
    MailboxKey { tenant: tenant.clone(), mailbox: id.clone() }
}

async fn find(
    app: &AppState,
    tenant: &TenantId,
    id: &MailboxId,
) -> Result<(WatchedMailbox, MailboxState), ApiError> {
    app.store.mailbox(&key_of(tenant, id)).await?.ok_or_else(|| no_mailbox(id.as_str()))
}

/// Checks the host of a new or changed mailbox, whichever key names it. A tenant's key must not allow reports
/// in its mailbox to be about other tenants' messages.
fn check_target(
    app: &AppState,
    actor: &CallerActor,
    before: Option<&MailboxSettings>,
    settings: &MailboxSettings,
) -> Result<(), ApiError> {
    if !actor.is_admin() && before.is_some_and(|before| before.all_tenants) {
        return Err(ApiError::forbidden("only the admin key may change a mailbox that has all_tenants"));
    }
    if !actor.is_admin() && settings.all_tenants {
        return Err(ApiError::field("all_tenants", "can be set with the admin key only"));
    }
    let has_same_addresses =
        before.map_or(settings.addresses.is_empty(), |it| it.addresses == settings.addresses);
    if !actor.is_admin() && !has_same_addresses {
        return Err(ApiError::field("addresses", "can be set with the admin key only"));
    }
    if settings.is_received() {
        return Ok(());
    }
    oauth::check_target(app, settings.oauth.as_ref())?;
    let is_same = |before: &MailboxSettings| {
        (&before.host, before.port, &before.proxy) == (&settings.host, settings.port, &settings.proxy)
    };
    if before.is_some_and(is_same) {
        return Ok(());
    }
    let proxy = settings.proxy.as_deref().and_then(proxy_host);
    let named = [("host", Some(settings.host.clone())), ("proxy", proxy)];
    callback_url::check_hosts(app, named)
}

/// Refuses addresses that another mailbox has, of whatever tenant: a mail goes to one of them.
async fn check_addresses(
    app: &AppState,
    key: &MailboxKey,
    settings: &MailboxSettings,
) -> Result<(), ApiError> {
    if !settings.is_received() {
        return Ok(());
    }
    let others = app.store.mailboxes(None).await?;
    let others = others.iter().filter(|other| (&other.tenant, &other.id) != (&key.tenant, &key.mailbox));
    match others.flat_map(|other| &other.settings.addresses).find(|one| settings.addresses.contains(one)) {
        Some(taken) => {
            Err(ApiError::conflict(format!("another mailbox has the address {taken}: change that one")))
        }
        None => Ok(()),
    }
}

/// List mailboxes
///
/// All watched mailboxes of your tenant, without their secrets, each with the result of its last scan.
#[utoipa::path(
    get,
    path = "/v1/mailboxes",
    operation_id = "listMailboxes",
    tag = "inbound",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "By id", body = MailboxList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<MailboxList>, ApiError> {
    let mailboxes = app.store.mailboxes(Some(&caller.tenant)).await?;
    let (mailboxes, next_cursor) = part.select(mailboxes, |mailbox| mailbox.id.to_string())?;
    let states = app.store.mailbox_states(Some(&caller.tenant)).await?;
    let states: HashMap<MailboxId, MailboxState> =
        states.into_iter().map(|state| (state.key.mailbox.clone(), state)).collect();
    let view = |mailbox: WatchedMailbox| {
        let state = states.get(&mailbox.id);
        MailboxView::new(mailbox, state)
    };
    Ok(Json(MailboxList { data: mailboxes.into_iter().map(view).collect(), next_cursor }))
}

/// Show a mailbox
///
/// With how far it was read, how far behind that is, and what is wrong with it.
#[utoipa::path(
    get,
    path = "/v1/mailboxes/{id}",
    operation_id = "getMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 200, description = "The mailbox, without its secrets", body = MailboxView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedMailbox(id): NamedMailbox,
) -> Result<Json<MailboxView>, ApiError> {
    let (mailbox, state) = find(&app, &caller.tenant, &id).await?;
    Ok(Json(MailboxView::new(mailbox, Some(&state))))
}

/// Delete a mailbox
///
/// With its rules, and everything stored about its mail. The mail on its server is not touched.
#[utoipa::path(
    delete,
    path = "/v1/mailboxes/{id}",
    operation_id = "deleteMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedMailbox(id): NamedMailbox,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "mailbox.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteMailbox(key_of(tenant, &id));
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, mailbox = %id, "mailbox deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(no_mailbox(id.as_str())),
    }
}
