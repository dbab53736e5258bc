//! Which account a message takes: the store's answer, remembered for a moment.
//!
//! Thousands of messages a second go by the same few accounts, so what was read is believed for a second. Only what
//! exists is remembered: an account made just now is found at once, and the size of the memory is bounded by the
//! number of accounts. A change or a deletion may go unnoticed for that second; dispatch reads the account again
//! anyway.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use postway_domain::{AccountId, TenantId};
use postway_store::{Store, StoreError};
use tokio::time::Instant;

/// How long an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Beyond this many answers, those no longer believed are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// What intake needs to know of an account.
#[derive(Debug)]
pub(crate) struct Route {
    pub account: AccountId,
    pub return_path: Option<String>,
}

/// The account found, or what is wrong with the name given.
pub(crate) type Lookup = Result<Arc<Route>, String>;

struct Known {
    read_at: Instant,
    route: Arc<Route>,
}

/// The memory. No name stands for the tenant's default.
pub(crate) struct Directory {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<(TenantId, Option<AccountId>), Known>>,
}

impl Directory {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: RwLock::default() }
    }

    /// Finds the account of that name, or the tenant's default.
    pub(crate) async fn route(&self, tenant: &TenantId, name: Option<&str>) -> Result<Lookup, StoreError> {
        let name: Option<AccountId> = match name.map(str::parse).transpose() {
            Ok(name) => name,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let key = (tenant.clone(), name);
        if let Some(route) = self.remembered(&key) {
            return Ok(Ok(route));
        }
        let found = self.read(tenant, key.1.as_ref()).await?;
        if let Ok(route) = &found {
            self.remember(key, Arc::clone(route));
        }
        Ok(found)
    }

    async fn read(&self, tenant: &TenantId, name: Option<&AccountId>) -> Result<Lookup, StoreError> {
        let id = match name {
            Some(name) => name.clone(),
            None => match self.store.tenant(tenant).await?.and_then(|tenant| tenant.default_account) {
                Some(id) => id,
                None => {
                    return Ok(Err("there is no default account: name the account to send by".to_owned()));
                }
            },
        };
        Ok(match self.store.account(tenant, &id).await? {
            Some(account) => Ok(Arc::new(Route { account: id, return_path: account.settings.return_path })),
            None => Err(format!("unknown account {id}; create it with POST /v1/accounts")),
        })
    }

    fn remembered(&self, key: &(TenantId, Option<AccountId>)) -> Option<Arc<Route>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .get(key)
            .filter(|known| known.read_at.elapsed() < FRESH_FOR)
            .map(|known| Arc::clone(&known.route))
    }

    fn remember(&self, key: (TenantId, Option<AccountId>), route: Arc<Route>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, known| known.read_at.elapsed() < FRESH_FOR);
        }
        known.insert(key, Known { read_at: Instant::now(), route });
    }
}
