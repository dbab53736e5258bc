//! Resolves names to addresses that a guard allows.
//!
//! The client connects only to the returned addresses, so a name cannot resolve to one address for the check
//! and to another for the connection.

use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{AddressGuard, NetError};

/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 8;

/// A resolver that returns only addresses that a guard allows.
pub struct GuardedResolver(pub Arc<AddressGuard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            // The client fills in the port.
            let addresses = tokio::net::lookup_host((host, 0))
                .await
                .map_err(|source| NetError::Resolve { host: host.to_owned(), source })?;
            let allowed: Vec<_> =
                addresses.filter(|address| guard.allows(address.ip())).take(ADDRESSES_MAX).collect();
            match allowed.is_empty() {
                true => Err(NetError::Guarded { host: host.to_owned() }.into()),
                false => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
