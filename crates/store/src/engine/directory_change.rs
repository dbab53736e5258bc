//! Changes of the directory: which folder makes each, and which subsystem must be woken after it.

use postway_domain::{oauth::OAuthOwner, quota::QuotaDay};

use crate::{
    admin::{
        accounts, audit, bulk_actions, domain_checks, keys, oauth, provider_hooks, quotas, routes,
        scoped_suppressions, sessions, streams, suppressions, suspensions, tenants, user_sessions, users,
    },
    content::{dkim_keys, links, recipients, templates},
    error::StoreError,
    inbound,
    queue::{clock_rollback, rate_limit, transaction::CommitEffects},
    record::{AccountKey, ChangeResult, DirectoryChange},
    reporting,
    retention::tenant_purge,
    sql::SqlSession,
};

/// Makes a change inside the transaction under way.
pub(crate) async fn change(
    session: &mut dyn SqlSession,
    change: &DirectoryChange,
    after: &mut CommitEffects,
) -> Result<ChangeResult, StoreError> {
    let changed = match change {
        DirectoryChange::CreateTenant(tenant, accounts) => {
            let created = tenants::create(session, tenant).await?;
            if created == ChangeResult::Done {
                for account in accounts {
                    accounts::create(session, account).await?;
                }
                reporting::keep_client(session, tenant).await?;
            }
            created
        }
        DirectoryChange::UpdateTenant(tenant, expected) => {
            let updated = tenants::update(session, tenant, *expected).await?;
            if updated == ChangeResult::Done {
                reporting::keep_client(session, tenant).await?;
            }
            updated
        }
        DirectoryChange::DeleteTenant(id, at) => tenants::delete(session, id, *at).await?,
        DirectoryChange::PurgeTenant(id, limit) => tenant_purge::purge(session, id, *limit).await?,
        DirectoryChange::SetDefaultAccount(tenant, account) => {
            tenants::set_default(session, tenant, account).await?
        }
        DirectoryChange::CreateAccount(account) => accounts::create(session, account).await?,
        DirectoryChange::UpdateAccount(account, expected) => {
            accounts::update(session, account, *expected).await?
        }
        DirectoryChange::DeleteAccount(key) => accounts::delete(session, key).await?,
        DirectoryChange::PutOAuthState(state, expected) => oauth::put(session, state, *expected).await?,
        DirectoryChange::PutProviderHook(hook, expected) => {
            provider_hooks::put(session, hook, *expected).await?
        }
        DirectoryChange::DeleteProviderHook(key) => provider_hooks::delete(session, key).await?,
        DirectoryChange::CreateKey(key) => keys::create(session, key).await?,
        DirectoryChange::RevokeKey(tenant, id, at) => keys::revoke(session, tenant, id, *at).await?,
        DirectoryChange::TouchKeys(used) => keys::touch(session, used).await?,
        DirectoryChange::EndSession(id, ends_at) => sessions::end(session, *id, *ends_at).await?,
        DirectoryChange::CreateUser(user) => users::create(session, user).await?,
        DirectoryChange::UpdateUser(user, expected) => users::update(session, user, *expected).await?,
        DirectoryChange::DeleteUser(id) => users::delete(session, *id).await?,
        DirectoryChange::BeginUserSession(begun) => user_sessions::begin(session, begun).await?,
        DirectoryChange::TouchUserSession(id, at) => user_sessions::touch(session, *id, *at).await?,
        DirectoryChange::EndUserSession(id) => user_sessions::end(session, *id).await?,
        DirectoryChange::EndUserSessions(user) => user_sessions::end_of_user(session, *user).await?,
        DirectoryChange::Suspend(suspension) => suspensions::suspend(session, suspension).await?,
        DirectoryChange::Activate(tenant, scope) => suspensions::activate(session, tenant, scope).await?,
        DirectoryChange::Suppress(list) => suppressions::add(session, list).await?,
        DirectoryChange::Unsuppress(tenant, addresses) => {
            suppressions::remove(session, tenant, addresses).await?
        }
        DirectoryChange::SuppressScoped(list) => scoped_suppressions::add(session, list).await?,
        DirectoryChange::UnsuppressScoped(scopes) => scoped_suppressions::remove(session, scopes).await?,
        DirectoryChange::CreateStream(stream) => streams::create(session, stream).await?,
        DirectoryChange::UpdateStream(stream, expected) => {
            streams::update(session, stream, *expected).await?
        }
        DirectoryChange::DeleteStream(tenant, id) => streams::delete(session, tenant, id).await?,
        DirectoryChange::CreateRoute(route) => routes::create(session, route).await?,
        DirectoryChange::UpdateRoute(route, expected) => routes::update(session, route, *expected).await?,
        DirectoryChange::DeleteRoute(tenant, id) => routes::delete(session, tenant, id).await?,
        DirectoryChange::OrderRoutes(tenant, order, now) => {
            routes::order(session, tenant, order, *now).await?
        }
        DirectoryChange::CreateBulkAction(action) => bulk_actions::create(session, action).await?,
        DirectoryChange::StopBulkAction(tenant, id, at) => {
            bulk_actions::stop(session, tenant, *id, *at).await?
        }
        DirectoryChange::PutDomainCheck(check) => domain_checks::put(session, check).await?,
        DirectoryChange::DeleteDomainCheck(tenant, domain) => {
            domain_checks::delete(session, tenant, domain).await?
        }
        DirectoryChange::OpenCircuit(circuit) => suspensions::open_circuit(session, circuit).await?,
        DirectoryChange::CloseCircuit(key) => suspensions::close_circuit(session, key).await?,
        DirectoryChange::RedactAudit { tenant, target, digest } => {
            audit::redact(session, tenant, target, digest).await?
        }
        DirectoryChange::CreateTemplate(template) => templates::create(session, template).await?,
        DirectoryChange::DeleteTemplate(tenant, name) => templates::delete(session, tenant, name).await?,
        DirectoryChange::CreateRecipient(recipient) => recipients::create(session, recipient).await?,
        DirectoryChange::UpdateRecipient(recipient, expected) => {
            recipients::update(session, recipient, *expected).await?
        }
        DirectoryChange::DeleteRecipient(tenant, id, at) => {
            recipients::delete(session, tenant, id, *at).await?
        }
        DirectoryChange::CreateDkimKey(key) => dkim_keys::create(session, key).await?,
        DirectoryChange::SwitchDkimKey(tenant, domain, selector, active) => {
            dkim_keys::switch(session, tenant, domain, selector, *active).await?
        }
        DirectoryChange::ResealDkimKey(key, was) => dkim_keys::reseal(session, key, was).await?,
        DirectoryChange::DeleteDkimKey(tenant, domain, selector) => {
            dkim_keys::delete(session, tenant, domain, selector).await?
        }
        DirectoryChange::CreateSubscriber(subscriber) => reporting::create(session, subscriber).await?,
        DirectoryChange::UpdateSubscriber(subscriber, expected) => {
            reporting::update(session, subscriber, *expected).await?
        }
        DirectoryChange::DeleteSubscriber(tenant, id) => reporting::delete(session, tenant, id).await?,
        DirectoryChange::QuietSubscriber(tenant, id, until) => {
            reporting::quiet(session, tenant, id, *until).await?
        }
        DirectoryChange::DeleteMailbox(key) => {
            let deleted = inbound::change(session, change).await?;
            if deleted == ChangeResult::Done {
                oauth::delete(session, &OAuthOwner::mailbox(&key.tenant, &key.mailbox)).await?;
            }
            deleted
        }
        DirectoryChange::CreateMailbox(_)
        | DirectoryChange::UpdateMailbox(..)
        | DirectoryChange::CreateRule(_)
        | DirectoryChange::UpdateRule(..)
        | DirectoryChange::DeleteRule(..)
        | DirectoryChange::CreateContact(_)
        | DirectoryChange::UpdateContact(..)
        | DirectoryChange::DeleteContact(..) => inbound::change(session, change).await?,
        DirectoryChange::Forget(now) => {
            reporting::forget(session).await?;
            inbound::forget(session).await?;
            suppressions::forget(session, *now).await?;
            scoped_suppressions::forget(session, *now).await?;
            sessions::forget(session, *now).await?;
            bulk_actions::forget(session, *now).await?;
            quotas::forget(session, QuotaDay::of(*now)).await?;
            user_sessions::forget(session, *now).await?;
            links::forget(session, *now).await?
        }
        DirectoryChange::ForgetUse(now, limit) => rate_limit::forget(session, *now, *limit).await?,
        DirectoryChange::PullReady(now, limit) => clock_rollback::pull(session, *now, *limit).await?,
        DirectoryChange::PullBeyond(latest, now, limit) => {
            clock_rollback::pull_beyond(session, latest, *now, *limit).await?
        }
        DirectoryChange::PullPreparation { now, latest, limit } => {
            clock_rollback::pull_preparation(session, *now, *latest, *limit).await?
        }
        DirectoryChange::ShiftUse(now, by_ms) => rate_limit::shift(session, *now, *by_ms).await?,
        DirectoryChange::SetUseBack(now, by_ms) => rate_limit::set_back(session, *now, *by_ms).await?,
        DirectoryChange::RedateUse(now) => rate_limit::redate(session, *now).await?,
        DirectoryChange::RenewPermit(permit, now) => rate_limit::renew(session, permit, *now).await?,
        DirectoryChange::LeaseQuota(lease) => quotas::lease(session, lease).await?,
        DirectoryChange::WarnOfQuota(tenant, day, level) => {
            quotas::warn(session, tenant, *day, *level).await?
        }
    };
    if changed == ChangeResult::Done {
        after.woken.extend(woken_by(change));
        after.changed.extend(woken_by(change));
        after.reports |= wakes_reports(change);
        if let DirectoryChange::Activate(tenant, scope) = change {
            after.woken.extend(suspensions::accounts_in(session, tenant, scope).await?);
        }
    }
    // Even a change that found nothing to do may have taken locks.
    after.wrote = true;
    Ok(changed)
}

/// The account that the dispatcher must check again after this change.
pub(crate) fn woken_by(change: &DirectoryChange) -> Option<AccountKey> {
    match change {
        DirectoryChange::CreateAccount(account) | DirectoryChange::UpdateAccount(account, _) => {
            Some(AccountKey { tenant: account.tenant.clone(), account: account.id.clone() })
        }
        DirectoryChange::DeleteAccount(key) | DirectoryChange::CloseCircuit(key) => Some(key.clone()),
        _ => None,
    }
}

/// Whether reporting must check its subscribers again after this change.
pub(crate) fn wakes_reports(change: &DirectoryChange) -> bool {
    use DirectoryChange::{CreateSubscriber, QuietSubscriber, UpdateSubscriber, UpdateTenant};
    matches!(change, CreateSubscriber(_) | UpdateSubscriber(..) | QuietSubscriber(..) | UpdateTenant(..))
}
