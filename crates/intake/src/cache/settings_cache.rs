//! Cached settings of tenants and accounts, and signing keys.

use std::{collections::BTreeMap, sync::Arc};

use postway_domain::{
    Account, AccountId, AccountKind, Clock, MailStream, Tenant, TenantId, TenantSettings,
    destination::DestinationLimit,
    id::StreamId,
    message::OnDoubt,
    secret::SecretKey,
    tenant::{RemoteService, TenantSecrets},
};
use postway_mime::dkim::DkimSigner;
use postway_store::{Store, StoreError};

use crate::{
    cache::{route_table::RouteTable, ttl_cache::TtlCache},
    refusal::CAPTURES,
    signing,
};

/// The most entries of each cache.
const CACHED_MAX: usize = 10_000;

/// What intake needs to know about an account.
#[derive(Debug)]
pub(crate) struct SendingAccount {
    pub id: AccountId,
    pub return_path: Option<String>,
    /// Whether the account, or its fallback, sends through SES.
    pub by_ses: bool,
    /// Whether it is the sandbox that each tenant begins with, which nobody chose and which captures mail.
    pub capture_reason: bool,
    /// What to do in doubt with mail that does not say it itself.
    pub on_doubt: Option<OnDoubt>,
    /// Its own limits of receiving domains.
    pub destinations: BTreeMap<String, DestinationLimit>,
}

impl SendingAccount {
    /// An account that somebody chose; `find` finds its fallback.
    pub(crate) fn chosen<'a>(
        account: &'a Account,
        find: impl FnOnce(&AccountId) -> Option<&'a Account>,
    ) -> Self {
        let fallback = account.settings.fallback.as_ref().and_then(find);
        let by_ses =
            [Some(account), fallback].into_iter().flatten().any(|one| one.settings.kind == AccountKind::Ses);
        Self {
            id: account.id.clone(),
            return_path: account.settings.return_path.clone(),
            by_ses,
            capture_reason: false,
            on_doubt: account.settings.on_doubt,
            destinations: account.settings.destinations.clone(),
        }
    }
}

/// The account, or the fault in the given name.
pub(crate) type AccountLookup = Result<Arc<SendingAccount>, String>;

/// What intake needs to know about a tenant.
#[derive(Debug)]
pub(crate) struct TenantProfile {
    pub tenant: TenantId,
    pub settings: TenantSettings,
    pub streams: BTreeMap<StreamId, StreamExits>,
    pub routes: RouteTable,
    secrets: TenantSecrets,
}

/// How readers can unsubscribe from a stream.
#[derive(Debug)]
pub(crate) struct StreamExits {
    pub by_link: bool,
    pub mailto: Option<String>,
}

impl TenantProfile {
    /// The endpoint for attachments, and the token or password for it.
    pub(crate) fn attachment_endpoint(&self) -> Option<(&RemoteService, Option<&str>)> {
        let remote = self.settings.attachment_endpoint.as_ref()?;
        Some((remote, self.secrets.attachment_endpoint.as_deref()))
    }
}

/// The DKIM signers of one domain.
pub(crate) type DomainSigners = Arc<[DkimSigner]>;

/// Cached settings. A key without an account is the tenant's default account.
pub(crate) struct SettingsCache {
    store: Arc<dyn Store>,
    secret_key: Arc<SecretKey>,
    clock: Arc<dyn Clock>,
    accounts: TtlCache<(TenantId, Option<AccountId>), Arc<SendingAccount>>,
    profiles: TtlCache<TenantId, Arc<TenantProfile>>,
    signers: TtlCache<(TenantId, String), DomainSigners>,
}

impl SettingsCache {
    pub(crate) fn new(store: Arc<dyn Store>, secret_key: Arc<SecretKey>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            secret_key,
            clock,
            accounts: TtlCache::with_capacity(CACHED_MAX),
            profiles: TtlCache::with_capacity(CACHED_MAX),
            signers: TtlCache::with_capacity(CACHED_MAX),
        }
    }

    /// Finds the account of that name, or the tenant's default account.
    pub(crate) async fn account(
        &self,
        tenant: &TenantId,
        name: Option<&str>,
    ) -> Result<AccountLookup, StoreError> {
        let name: Option<AccountId> = match name.map(str::parse).transpose() {
            Ok(name) => name,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let key = (tenant.clone(), name);
        let generation = self.store.generation();
        if let Some(account) = self.accounts.get(&key, generation) {
            return Ok(Ok(account));
        }
        let found = self.read_account(tenant, key.1.as_ref()).await?;
        if let Ok(account) = &found {
            self.accounts.put(key, generation, Arc::clone(account));
        }
        Ok(found)
    }

    /// Why the sandbox would capture mail of this tenant that names no account, although nobody chose the
    /// sandbox; `None` if it would not.
    pub(crate) async fn capture_reason(&self, tenant: &TenantId) -> Result<Option<&'static str>, StoreError> {
        // With routes it depends on the message, so each is judged by itself.
        if !self.profile(tenant).await?.routes.is_empty() {
            return Ok(None);
        }
        let found = self.account(tenant, None).await?;
        Ok(found.is_ok_and(|account| account.capture_reason).then_some(CAPTURES))
    }

    async fn read_account(
        &self,
        tenant: &TenantId,
        name: Option<&AccountId>,
    ) -> Result<AccountLookup, StoreError> {
        let (id, is_chosen) = match name {
            Some(name) => (name.clone(), true),
            None => {
                let found = self.store.tenant(tenant).await?;
                let is_test = found.as_ref().is_some_and(|tenant| tenant.settings.test);
                match found.and_then(|tenant| tenant.default_account) {
                    Some(id) => (id, is_test),
                    None => {
                        return Ok(
                            Err("there is no default account: name the account to send by".to_owned()),
                        );
                    }
                }
            }
        };
        let Some(account) = self.store.account(tenant, &id).await? else {
            return Ok(Err(format!("unknown account {id}; create it with POST /v1/accounts")));
        };
        let fallback = match &account.settings.fallback {
            Some(fallback) => self.store.account(tenant, fallback).await?,
            None => None,
        };
        let sending = SendingAccount::chosen(&account, |_| fallback.as_ref());
        let capture_reason = !is_chosen && account.settings.kind == AccountKind::Sandbox;
        Ok(Ok(Arc::new(SendingAccount { capture_reason, ..sending })))
    }

    /// The settings of a tenant; the caller has made sure that it exists.
    pub(crate) async fn profile(&self, tenant: &TenantId) -> Result<Arc<TenantProfile>, StoreError> {
        let generation = self.store.generation();
        if let Some(profile) = self.profiles.get(tenant, generation) {
            return Ok(profile);
        }
        let found = self.store.tenant(tenant).await?;
        let (settings, sealed) = found.map(|found| (found.settings, found.secret)).unwrap_or_default();
        let secrets = match sealed {
            Some(sealed) => {
                let place = Tenant::sealing_context(tenant);
                let text = self.secret_key.open(&place, &sealed);
                let text = text.map_err(|error| StoreError::Unexpected(error.to_string()))?;
                serde_json::from_str(&text)
                    .map_err(|_| StoreError::Unexpected("a tenant's secrets are not JSON".to_owned()))?
            }
            None => TenantSecrets::default(),
        };
        let streams = self.store.streams(tenant, None, MailStream::PER_TENANT_MAX).await?;
        let exits = |stream: MailStream| {
            let MailStream { id, unsubscribe, unsubscribe_mailto, .. } = stream;
            (id, StreamExits { by_link: unsubscribe, mailto: unsubscribe_mailto.filter(|_| unsubscribe) })
        };
        let streams = streams.into_iter().map(exits).collect();
        let routes = RouteTable::read(&*self.store, tenant, self.clock.now()).await?;
        let profile = Arc::new(TenantProfile { tenant: tenant.clone(), settings, streams, routes, secrets });
        self.profiles.put(tenant.clone(), generation, Arc::clone(&profile));
        Ok(profile)
    }

    /// The signers for mail from this domain. That there are none is cached too.
    pub(crate) async fn signers(&self, tenant: &TenantId, domain: &str) -> Result<DomainSigners, StoreError> {
        let key = (tenant.clone(), in_ascii(domain));
        let generation = self.store.generation();
        if let Some(signers) = self.signers.get(&key, generation) {
            return Ok(signers);
        }
        let keys = self.store.dkim_keys(Some(tenant), Some(&key.1)).await?;
        let mut signers = Vec::new();
        for key in keys.iter().filter(|key| key.active) {
            match signing::signer(key, &self.secret_key) {
                Ok(signer) => signers.push(signer),
                Err(error) => {
                    // Receivers may refuse unsigned mail; mail that waits for an operator is safe.
                    let named =
                        format!("the DKIM key {} of {} cannot be used: {error}", key.selector, key.domain);
                    return Err(StoreError::Unexpected(named));
                }
            }
        }
        let signers: DomainSigners = signers.into();
        self.signers.put(key, generation, Arc::clone(&signers));
        Ok(signers)
    }
}

/// A domain as signing keys name it: in lower case, and as `xn--…` if it is not ASCII.
fn in_ascii(domain: &str) -> String {
    match url::Host::parse(domain) {
        Ok(url::Host::Domain(ascii)) if !domain.is_ascii() => ascii,
        _ => domain.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_the_domain_in_ascii() {
        for (domain, ascii) in [
            ("Example.COM", "example.com"),
            ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(in_ascii(domain), ascii);
        }
    }
}
