//! Names to addresses that a guard lets through.
//!
//! The client connects to what this gives and to nothing else, so a name cannot show one address to the check and
//! another to the connection.

use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{Guard, NetError};

/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 8;

/// Resolves names to those of their addresses that a guard lets through.
pub struct GuardedResolver(pub Arc<Guard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            // The port is the client's to fill in.
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
