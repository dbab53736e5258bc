//! `POST /v1/secrets/rotate`: re-encrypts every stored secret with the current secret key.
//!
//! The previous key must still be configured, or what it encrypted cannot be opened. After a complete
//! rotation nothing stored needs it; links and codes that were already sent still do. Repeating the call does
//! nothing.

use axum::{Json, extract::State};
use futures::future::try_join_all;
use postway_domain::{
    Account, DkimKey, KnownRecipient, ProviderHook, Subscriber, Tenant, TenantId, User, WatchedMailbox,
    egress::ProxySetting, oauth::OAuthState, secret::SealedSecret,
};
use postway_store::{
    StoreError,
    record::{AuditEntry, ChangeResult, DirectoryChange},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{Admin, session::user::renew_totp},
    http::{error::ApiError, request_id::RequestId},
    outgoing::recipient::personal::PersonalNumber,
    state::SharedState,
};

/// Tenants or recipients read at a time.
const PAGE: u32 = 500;
/// Recipients written at a time, so that they share transactions.
const WRITTEN_AT_ONCE: usize = 50;

/// The result of a rotation.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Rotation)]
pub(crate) struct RotationView {
    /// Accounts whose secret was re-encrypted.
    accounts: u64,
    /// Tenants whose secrets were re-encrypted.
    tenants: u64,
    /// Recipients whose personal number was re-encrypted.
    recipients: u64,
    /// DKIM keys that were re-encrypted.
    dkim_keys: u64,
    /// Webhooks whose secrets were re-encrypted.
    webhooks: u64,
    /// Mailboxes whose secrets were re-encrypted.
    mailboxes: u64,
    /// Hooks of accounts whose secret was re-encrypted.
    hooks: u64,
    /// Accounts and mailboxes whose tokens were re-encrypted.
    tokens: u64,
    /// Users whose authenticator secret was re-encrypted.
    users: u64,
    /// What neither key opens: its secret must be set again.
    #[schema(example = json!(["account/default/relay-1"]))]
    unreadable: Vec<String>,
    /// What was changed at the same moment: repeat the call.
    busy: Vec<String>,
}

/// Re-encrypt stored secrets
///
/// For the admin key. Call this after `POSTWAY_SECRET_KEY` was changed, with the old key in
/// `POSTWAY_SECRET_KEY_PREVIOUS`, on every node. Once nothing is `unreadable` or `busy`, the previous key is
/// needed only for links, codes and return paths that were created under it and are still in use.
#[utoipa::path(
    post,
    path = "/v1/secrets/rotate",
    operation_id = "rotateSecrets",
    tag = "operations",
    responses((status = 200, description = "The counts", body = RotationView))
)]
pub(crate) async fn rotate(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
) -> Result<Json<RotationView>, ApiError> {
    let mut rotation =
        SecretRotation { app: &app, admin: &admin, request_id: &request_id, done: Default::default() };
    for account in app.store.accounts(None).await? {
        rotation.account(account).await?;
    }
    for state in app.store.oauth_states().await? {
        rotation.oauth_state(state).await?;
    }
    for key in app.store.dkim_keys(None, None).await? {
        rotation.dkim_key(key).await?;
    }
    for webhook in app.store.subscribers(None).await? {
        rotation.webhook(webhook).await?;
    }
    for mailbox in app.store.mailboxes(None).await? {
        rotation.mailbox(mailbox).await?;
    }
    for hook in app.store.provider_hooks(None).await? {
        rotation.hook(hook).await?;
    }
    rotation.users().await?;
    let mut after = None;
    loop {
        let page = app.store.tenants(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for tenant in page.into_iter().filter(|tenant| tenant.deleted_at.is_none()) {
            rotation.recipients_of(&tenant.id).await?;
            rotation.tenant(tenant).await?;
        }
    }
    let done = rotation.done;
    tracing::info!(
        accounts = done.accounts,
        tenants = done.tenants,
        recipients = done.recipients,
        dkim_keys = done.dkim_keys,
        webhooks = done.webhooks,
        mailboxes = done.mailboxes,
        hooks = done.hooks,
        tokens = done.tokens,
        users = done.users,
        "stored secrets were sealed anew"
    );
    Ok(Json(done))
}

/// A rotation in progress.
struct SecretRotation<'a> {
    app: &'a SharedState,
    admin: &'a Admin,
    request_id: &'a RequestId,
    done: RotationView,
}

impl SecretRotation<'_> {
    fn audit(&self, tenant: &TenantId, target: &str) -> AuditEntry {
        self.app.audit(&self.admin.actor, Some(tenant), "secret.rotate", target, self.request_id, None)
    }

    /// Re-encrypts the secret if needed; `None` if there is nothing to write.
    fn renew(&mut self, place: &str, secret: Option<&SealedSecret>) -> Option<SealedSecret> {
        match secret.map(|sealed| self.app.secret_key.renew(place, sealed)) {
            Some(Ok(renewed)) => renewed,
            Some(Err(_)) => {
                self.done.unreadable.push(place.to_owned());
                None
            }
            None => None,
        }
    }

    async fn users(&mut self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.app.store.users(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.name.clone());
            for user in page {
                self.user(user).await?;
            }
        }
    }

    async fn user(&mut self, user: User) -> Result<(), StoreError> {
        let Some(stored) = &user.credentials.totp else { return Ok(()) };
        let place = format!("user/{}", user.name);
        let renewed = match renew_totp(self.app, stored) {
            Ok(Some(renewed)) => renewed,
            Ok(None) => return Ok(()),
            Err(()) => {
                self.done.unreadable.push(place);
                return Ok(());
            }
        };
        let expected = user.version;
        let mut next = User { version: expected + 1, ..user };
        next.credentials.totp = Some(renewed);
        let (actor, name) = (&self.admin.actor, next.name.to_string());
        let entry = self.app.audit(actor, None, "secret.rotate", name, self.request_id, None);
        match self.app.store.change(DirectoryChange::UpdateUser(next, expected), Some(entry)).await? {
            ChangeResult::Done => self.done.users += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn account(&mut self, mut account: Account) -> Result<(), StoreError> {
        let place = account.current_sealing_context();
        let secret = self.renew(&place, account.secret.as_ref());
        let proxy_place = ProxySetting::account_context(&account.tenant, &account.id);
        let stored = account.settings.proxy.as_ref().and_then(|proxy| proxy.password.as_ref());
        let proxy_password = self.renew(&proxy_place, stored);
        if secret.is_none() && proxy_password.is_none() {
            return Ok(());
        }
        if let (Some(proxy), Some(password)) = (&mut account.settings.proxy, proxy_password) {
            proxy.password = Some(password);
        }
        let (expected, entry) = (account.version, self.audit(&account.tenant, &place));
        let updated_at = self.app.clock.now();
        let secret = secret.or_else(|| account.secret.clone());
        let account = Account { secret, version: expected + 1, updated_at, ..account };
        match self.app.store.change(DirectoryChange::UpdateAccount(account, expected), Some(entry)).await? {
            ChangeResult::Done => self.done.accounts += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn tenant(&mut self, tenant: Tenant) -> Result<(), StoreError> {
        let place = Tenant::sealing_context(&tenant.id);
        let Some(secret) = self.renew(&place, tenant.secret.as_ref()) else { return Ok(()) };
        let (expected, entry) = (tenant.version, self.audit(&tenant.id, &place));
        let updated_at = self.app.clock.now();
        let tenant = Tenant { secret: Some(secret), version: expected + 1, updated_at, ..tenant };
        match self.app.store.change(DirectoryChange::UpdateTenant(tenant, expected), Some(entry)).await? {
            ChangeResult::Done => self.done.tenants += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn dkim_key(&mut self, key: DkimKey) -> Result<(), StoreError> {
        let place = DkimKey::sealing_context(&key.tenant, &key.domain, &key.selector);
        let Some(private) = self.renew(&place, Some(&key.private)) else { return Ok(()) };
        let entry = self.audit(&key.tenant, &place);
        let was = key.private.clone();
        let change = DirectoryChange::ResealDkimKey(DkimKey { private, ..key }, was);
        // A row that was deleted or recreated meanwhile needs no new seal.
        if self.app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            self.done.dkim_keys += 1;
        }
        Ok(())
    }

    async fn webhook(&mut self, webhook: Subscriber) -> Result<(), StoreError> {
        let place = Subscriber::sealing_context(&webhook.tenant, &webhook.id);
        let Some(secrets) = self.renew(&place, webhook.secrets.as_ref()) else { return Ok(()) };
        let (expected, entry) = (webhook.version, self.audit(&webhook.tenant, &place));
        let updated_at = self.app.clock.now();
        let webhook = Subscriber { secrets: Some(secrets), version: expected + 1, updated_at, ..webhook };
        match self.app.store.change(DirectoryChange::UpdateSubscriber(webhook, expected), Some(entry)).await?
        {
            ChangeResult::Done => self.done.webhooks += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn mailbox(&mut self, mailbox: WatchedMailbox) -> Result<(), StoreError> {
        let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
        let Some(secret) = self.renew(&place, mailbox.secret.as_ref()) else { return Ok(()) };
        let (expected, entry) = (mailbox.version, self.audit(&mailbox.tenant, &place));
        let updated_at = self.app.clock.now();
        let mailbox = WatchedMailbox { secret: Some(secret), version: expected + 1, updated_at, ..mailbox };
        match self.app.store.change(DirectoryChange::UpdateMailbox(mailbox, expected), Some(entry)).await? {
            ChangeResult::Done => self.done.mailboxes += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn hook(&mut self, hook: ProviderHook) -> Result<(), StoreError> {
        let place = ProviderHook::sealing_context(&hook.tenant, &hook.account);
        let Some(secret) = self.renew(&place, hook.secret.as_ref()) else { return Ok(()) };
        let (expected, entry) = (hook.version, self.audit(&hook.tenant, &place));
        let updated_at = self.app.clock.now();
        let hook = ProviderHook { secret: Some(secret), version: expected + 1, updated_at, ..hook };
        let change = DirectoryChange::PutProviderHook(hook, Some(expected));
        match self.app.store.change(change, Some(entry)).await? {
            ChangeResult::Done => self.done.hooks += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn oauth_state(&mut self, state: OAuthState) -> Result<(), StoreError> {
        let place = state.owner.sealing_context();
        let Some(tokens) = self.renew(&place, state.tokens.as_ref()) else { return Ok(()) };
        let (expected, entry) = (state.version, self.audit(&state.owner.tenant, &place));
        let updated_at = self.app.clock.now();
        let state = OAuthState { tokens: Some(tokens), version: expected + 1, updated_at, ..state };
        let change = DirectoryChange::PutOAuthState(state, Some(expected));
        match self.app.store.change(change, Some(entry)).await? {
            ChangeResult::Done => self.done.tokens += 1,
            _ => self.done.busy.push(place),
        }
        Ok(())
    }

    async fn recipients_of(&mut self, tenant: &TenantId) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.app.store.recipients(tenant, None, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            let renewed: Vec<KnownRecipient> =
                page.into_iter().filter_map(|recipient| self.renewed(recipient)).collect();
            for run in renewed.chunks(WRITTEN_AT_ONCE) {
                self.write(run).await?;
            }
        }
    }

    /// A recipient whose personal number was sealed by the previous key, re-encrypted. Its digest is by that
    /// key, too.
    fn renewed(&mut self, mut recipient: KnownRecipient) -> Option<KnownRecipient> {
        let place = KnownRecipient::sealing_context(&recipient.tenant, &recipient.id);
        let sealed = self.renew(&place, recipient.personal_number.as_ref())?;
        let key = &self.app.secret_key;
        let personal = key
            .open(&place, &sealed)
            .and_then(|number| PersonalNumber::new(key, &recipient.tenant, &recipient.id, &number));
        match personal {
            Ok(personal) => PersonalNumber::store_in(Some(personal), &mut recipient),
            Err(_) => {
                self.done.unreadable.push(place);
                return None;
            }
        }
        recipient.version += 1;
        recipient.updated_at = self.app.clock.now();
        Some(recipient)
    }

    async fn write(&mut self, renewed: &[KnownRecipient]) -> Result<(), StoreError> {
        let changes = renewed.iter().enumerate().map(|(place, recipient)| {
            // There may be millions: the first of a page is recorded in the audit log for all of it.
            let entry = (place == 0)
                .then(|| self.audit(&recipient.tenant, &format!("recipient/{}", recipient.tenant)));
            let change = DirectoryChange::UpdateRecipient(recipient.clone(), recipient.version - 1);
            self.app.store.change(change, entry)
        });
        for (recipient, changed) in renewed.iter().zip(try_join_all(changes).await?) {
            match changed {
                ChangeResult::Done => self.done.recipients += 1,
                _ => self.done.busy.push(KnownRecipient::sealing_context(&recipient.tenant, &recipient.id)),
            }
        }
        Ok(())
    }
}
