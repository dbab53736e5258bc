//! Logs at each start which stored relays and mailboxes the guard will not connect to.
//!
//! Their mail waits, and that may stay unnoticed: after an upgrade from a version in which the admin key
//! could name private hosts, or after a network was taken off `allow_private_targets`. The log is the
//! operator's, so that here names are resolved and the line to add is written out, which errors that tenants
//! see do not do.
//!
//! Nothing is changed and the start does not wait. The number of hosts, the time for each and the log lines
//! are bounded; names that the resolver does not answer are left to the first connection.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use postway_domain::{Account, WatchedMailbox};
use postway_net::{AddressGuard, how_to_allow, literal_address};
use postway_store::Store;
use reqwest::Url;
use tokio::{net::lookup_host, time::timeout};

/// The most hosts that are checked.
const HOSTS_MAX: usize = 1_000;
/// Names that are resolved at once.
const AT_ONCE: usize = 8;
/// How long the resolver may take for one name.
const RESOLVE_S_MAX: u64 = 5;
/// Hosts that are named in the log; the rest are counted.
const LOGGED_MAX: usize = 20;

/// A host that the guard refuses, and where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RefusedHost {
    host: String,
    address: IpAddr,
    used_by: String,
}

/// Checks every stored host once, and logs those that are refused.
pub async fn report(store: Arc<dyn Store>, guard: Arc<AddressGuard>) {
    let (accounts, mailboxes) = match (store.accounts(None).await, store.mailboxes(None).await) {
        (Ok(accounts), Ok(mailboxes)) => (accounts, mailboxes),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "the hosts of accounts and mailboxes could not be read to check them");
            return;
        }
    };
    let refused = find(stored_hosts(&accounts, &mailboxes), &guard).await;
    for RefusedHost { host, address, used_by } in refused.iter().take(LOGGED_MAX) {
        let allow = how_to_allow(*address);
        tracing::warn!(
            host,
            used_by,
            "this host is not on the public internet and is not connected to; mail for it waits. If it is to be \
             reached, {allow}"
        );
    }
    if refused.len() > LOGGED_MAX {
        tracing::warn!(
            more = refused.len() - LOGGED_MAX,
            "further hosts are not connected to for the same reason"
        );
    }
}

/// Every host that is connected to, with the first account or mailbox that names it.
fn stored_hosts(accounts: &[Account], mailboxes: &[WatchedMailbox]) -> BTreeMap<String, String> {
    let mut hosts = BTreeMap::new();
    let mut note = |host: Option<String>, used_by: String| {
        if let Some(host) = host.filter(|_| hosts.len() < HOSTS_MAX) {
            hosts.entry(host.to_ascii_lowercase()).or_insert(used_by);
        }
    };
    let host_of = |url: &str| Url::parse(url).ok()?.host_str().map(str::to_owned);
    for account in accounts {
        let used_by = format!("account {}/{}", account.tenant, account.id);
        if let Some(proxy) = &account.settings.proxy {
            note(host_of(&proxy.url), used_by.clone());
        }
        note(account.settings.host.clone(), used_by.clone());
        note(account.settings.ses.endpoint.as_deref().and_then(host_of), used_by.clone());
        note(account.settings.provider.base_url.as_deref().and_then(host_of), used_by);
    }
    for mailbox in mailboxes {
        let used_by = format!("mailbox {}/{}", mailbox.tenant, mailbox.id);
        match &mailbox.settings.proxy {
            // The proxy's side resolves the mailbox's host.
            Some(proxy) => note(host_of(proxy), used_by),
            None => note(Some(mailbox.settings.host.clone()), used_by),
        }
    }
    hosts
}

async fn find(hosts: BTreeMap<String, String>, guard: &AddressGuard) -> Vec<RefusedHost> {
    let looked = stream::iter(hosts).map(async |(host, used_by)| {
        let address = refused_address(&host, guard).await?;
        Some(RefusedHost { host, address, used_by })
    });
    looked.buffered(AT_ONCE).filter_map(async |refused| refused).collect().await
}

/// The address for which a host is refused; `None` if one of its addresses is allowed, or none is known.
async fn refused_address(host: &str, guard: &AddressGuard) -> Option<IpAddr> {
    let addresses: Vec<IpAddr> = match literal_address(host) {
        Some(address) => vec![address],
        None => {
            let resolved = timeout(Duration::from_secs(RESOLVE_S_MAX), lookup_host((host, 0))).await;
            resolved.ok()?.ok()?.map(|found| found.ip().to_canonical()).collect()
        }
    };
    match addresses.iter().any(|address| guard.allows(*address)) {
        true => None,
        false => addresses.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::{AccountSettings, Time};

    use super::*;

    fn account(id: &str, host: Option<&str>, endpoint: Option<&str>) -> Account {
        let mut settings = AccountSettings::sandbox();
        settings.host = host.map(str::to_owned);
        settings.ses.endpoint = endpoint.map(str::to_owned);
        Account {
            tenant: "default".parse().unwrap(),
            id: id.parse().unwrap(),
            settings,
            secret: None,
            version: 1,
            created_at: Time::from_millis(0),
            updated_at: Time::from_millis(0),
        }
    }

    #[tokio::test]
    async fn private_hosts_are_found_and_allowed_or_public_ones_are_not() {
        let mut provider = account("own", None, None);
        provider.settings.provider.base_url = Some("https://10.9.9.9/mail".to_owned());
        let accounts = [
            account("sandbox", None, None),
            account("local", Some("127.0.0.1"), None),
            account("twin", Some("127.0.0.1"), None),
            account("public", Some("8.8.8.8"), None),
            account("ses", None, Some("http://10.1.2.3:4566")),
            provider,
        ];
        let refused = async |guard: AddressGuard| -> Vec<(String, String)> {
            let found = find(stored_hosts(&accounts, &[]), &guard).await;
            found.into_iter().map(|one| (one.host, one.used_by)).collect()
        };
        let both = [
            ("10.1.2.3", "account default/ses"),
            ("10.9.9.9", "account default/own"),
            ("127.0.0.1", "account default/local"),
        ];
        assert_eq!(
            refused(AddressGuard::default()).await,
            both.map(|(host, by)| (host.to_owned(), by.to_owned()))
        );
        assert_eq!(refused(AddressGuard::with_loopback()).await.len(), 2);
    }
}
