//! `PATCH /v1/mailboxes/{id}`: changes the given fields.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{
    WatchedMailbox,
    mailbox::{MailboxAuth, MailboxSettings},
};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{
    MailboxView, NamedMailbox, check_addresses, check_target,
    create::watched_already,
    edit::{self, MailboxEdit},
    find, key_of,
    schema::MailboxRequest,
    secret::{self, MailboxSecretsEdit, SecretChange},
};
use crate::{
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    setting::{proxy::names_user, secret_destination::SecretDestination},
    state::SharedState,
};

/// Change a mailbox
///
/// Changes the given fields and leaves the others; `null` resets a setting to its default. With `version`,
/// the change is made only if the mailbox still has that version; 409 otherwise. Another host, username or
/// folder is another mailbox to read: it is read from its `start`. A change of host, port or proxy, and any
/// reduction of TLS protection, requires the password or token again.
#[utoipa::path(
    patch,
    path = "/v1/mailboxes/{id}",
    operation_id = "changeMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    request_body = MailboxRequest,
    responses((status = 200, description = "The mailbox after the change", body = MailboxView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedMailbox(id): NamedMailbox,
    request: Request,
) -> Result<Json<MailboxView>, ApiError> {
    let body = body::json_object(request).await?;
    let names: Vec<String> = body.keys().take(30).cloned().collect();
    let tenant = &caller.tenant;
    change_versioned("mailbox", || async {
        let (current, _) = find(&app, tenant, &id).await?;
        let MailboxEdit { mut settings, secrets, version } =
            edit::edit(Some(&current.settings), body.clone()).map_err(ApiError::invalid)?;
        let expected = current.version;
        check_version("mailbox", version, expected)?;
        check_target(&app, &caller.actor, Some(&current.settings), &settings)?;
        check_addresses(&app, &key_of(tenant, &id), &settings).await?;
        let wrong = exposed(&current, &settings, &secrets);
        if !wrong.is_empty() {
            return Err(ApiError::invalid(wrong));
        }
        let secret = secret::seal(&app, tenant, &id, &mut settings, secrets, current.secret)?;
        let (version, updated_at) = (expected + 1, app.clock.now());
        let mailbox = WatchedMailbox { settings, secret, version, updated_at, ..current };
        let detail = Some(json!({"fields": names, "version": version}));
        let entry =
            app.audit(&caller.actor, Some(tenant), "mailbox.change", id.as_str(), &request_id, detail);
        match app.store.change(DirectoryChange::UpdateMailbox(mailbox, expected), Some(entry)).await? {
            ChangeResult::Done => {
                tracing::info!(%tenant, mailbox = %id, version, "mailbox changed");
                let (mailbox, state) = find(&app, tenant, &id).await?;
                return Ok(Some(Json(MailboxView::new(mailbox, Some(&state)))));
            }
            ChangeResult::Exists => return Err(watched_already()),
            ChangeResult::Already | ChangeResult::Missing | ChangeResult::Stale | ChangeResult::InUse => {}
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

/// The stored secrets that a change would send to another destination.
fn exposed(
    current: &WatchedMailbox,
    settings: &MailboxSettings,
    secrets: &MailboxSecretsEdit,
) -> Vec<FieldError> {
    let before = &current.settings;
    let login = match (&before.oauth, settings.auth) {
        (Some(grant), _) => secrets.grant.kept_of(grant),
        (None, MailboxAuth::Password) => Some("password"),
        (None, MailboxAuth::Xoauth2) => Some("token"),
    };
    // A removed grant takes its secrets along, and a new one replaces what was there.
    let stays = before.oauth.is_some() == settings.oauth.is_some();
    let login = login.filter(|_| current.secret.is_some() && secrets.login.is_none() && stays);
    let keeps_proxy = names_user(before.proxy.as_deref()) && secrets.proxy_password == SecretChange::Keep;
    let login = login.map(|name| {
        SecretDestination::check(
            &SecretDestination::of_mailbox(before),
            &SecretDestination::of_mailbox(settings),
            name,
        )
    });
    let proxy = keeps_proxy.then(|| {
        SecretDestination::check(
            &SecretDestination::of_proxy(before.proxy.as_deref()),
            &SecretDestination::of_proxy(settings.proxy.as_deref()),
            "proxy_password",
        )
    });
    [login, proxy].into_iter().flatten().filter_map(Result::err).collect()
}
