//! Signing keys.

use postway_domain::{DkimAlgorithm, DkimKey, TenantId, secret::SealedSecret};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
    stage::direct,
};
use crate::record::{ChangeResult, DirectoryChange};

/// A tenant's key, active.
pub fn key(tenant: &str, domain: &str, selector: &str) -> DkimKey {
    DkimKey {
        tenant: tenant.parse().unwrap(),
        domain: domain.to_owned(),
        selector: selector.to_owned(),
        algorithm: DkimAlgorithm::Rsa,
        private: SealedSecret(vec![0, 255, 7]),
        public: "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A".to_owned(),
        active: true,
        created_at: at(1),
    }
}

async fn create(store: &Shared, key: DkimKey) -> ChangeResult {
    direct(store, DirectoryChange::CreateDkimKey(key)).await
}

async fn of(store: &Shared, tenant: &TenantId, domain: &str) -> Vec<DkimKey> {
    store.dkim_keys(Some(tenant), Some(domain)).await.unwrap()
}

/// Whatever its algorithm.
pub async fn a_signing_key_reads_back_whole(store: &Shared) {
    let rsa = DkimKey {
        private: SealedSecret((0..=255).cycle().take(1_700).collect()),
        ..key(TENANT, "example.com", "a")
    };
    let ed25519 =
        DkimKey { algorithm: DkimAlgorithm::Ed25519, active: false, ..key(TENANT, "example.com", "b") };
    assert_eq!(create(store, ed25519.clone()).await, ChangeResult::Done);
    assert_eq!(create(store, rsa.clone()).await, ChangeResult::Done);
    assert_eq!(of(store, &tenant(), "example.com").await, [rsa, ed25519]);
    assert!(of(store, &other_tenant(), "example.com").await.is_empty());
}

/// Domains are the same in any case.
pub async fn a_domain_is_found_in_any_case(store: &Shared) {
    assert_eq!(create(store, key(TENANT, "Example.COM", "a")).await, ChangeResult::Done);
    assert_eq!(create(store, key(TENANT, "example.com", "a")).await, ChangeResult::Exists);
    assert_eq!(of(store, &tenant(), "EXAMPLE.com").await, [key(TENANT, "example.com", "a")]);
    let delete = DirectoryChange::DeleteDkimKey(tenant(), "EXAMPLE.COM".to_owned(), "a".to_owned());
    assert_eq!(direct(store, delete).await, ChangeResult::Done);
    assert!(of(store, &tenant(), "example.com").await.is_empty());
}

/// A taken name stays with what has it.
pub async fn a_selector_is_taken_once_per_domain_and_tenant(store: &Shared) {
    assert_eq!(create(store, key(TENANT, "example.com", "a")).await, ChangeResult::Done);
    let again = DkimKey { public: "other".to_owned(), ..key(TENANT, "example.com", "a") };
    assert_eq!(create(store, again).await, ChangeResult::Exists);
    for other in [
        key(TENANT, "example.com", "b"),
        key(TENANT, "example.org", "a"),
        key(OTHER_TENANT, "example.com", "a"),
    ] {
        assert_eq!(create(store, other).await, ChangeResult::Done);
    }
    assert_eq!(of(store, &tenant(), "example.com").await[0], key(TENANT, "example.com", "a"));
}

/// What is published stays as it is.
pub async fn a_signing_key_is_switched_and_sealed_anew(store: &Shared) {
    assert_eq!(create(store, key(TENANT, "example.com", "a")).await, ChangeResult::Done);
    assert_eq!(create(store, key(TENANT, "example.com", "b")).await, ChangeResult::Done);
    let switch = |tenant: TenantId| {
        DirectoryChange::SwitchDkimKey(tenant, "example.com".to_owned(), "a".to_owned(), false)
    };
    assert_eq!(direct(store, switch(tenant())).await, ChangeResult::Done);
    assert_eq!(direct(store, switch(other_tenant())).await, ChangeResult::Missing);
    // Read before it was switched, as by a rotation that meets a suspension.
    let read = key(TENANT, "example.com", "a");
    let anew = DkimKey {
        private: SealedSecret(vec![9]),
        public: "ignored".to_owned(),
        algorithm: DkimAlgorithm::Ed25519,
        created_at: at(99),
        ..read.clone()
    };
    let reseal = || DirectoryChange::ResealDkimKey(anew.clone(), read.private.clone());
    assert_eq!(direct(store, reseal()).await, ChangeResult::Done);
    assert_eq!(direct(store, reseal()).await, ChangeResult::Stale, "it is sealed otherwise by now");
    let stored = DkimKey { private: SealedSecret(vec![9]), active: false, ..read };
    assert_eq!(of(store, &tenant(), "example.com").await, [stored, key(TENANT, "example.com", "b")]);
}

/// Its neighbours stay.
pub async fn a_deleted_signing_key_is_gone(store: &Shared) {
    for (of, domain, selector) in
        [(TENANT, "example.com", "a"), (TENANT, "example.com", "b"), (OTHER_TENANT, "example.com", "a")]
    {
        assert_eq!(create(store, key(of, domain, selector)).await, ChangeResult::Done);
    }
    let delete = || DirectoryChange::DeleteDkimKey(tenant(), "example.com".to_owned(), "a".to_owned());
    assert_eq!(direct(store, delete()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete()).await, ChangeResult::Missing);
    assert_eq!(of(store, &tenant(), "example.com").await, [key(TENANT, "example.com", "b")]);
    assert_eq!(of(store, &other_tenant(), "example.com").await, [key(OTHER_TENANT, "example.com", "a")]);
}

/// One tenant's or everyone's, of one domain or of all.
pub async fn signing_keys_are_listed_by_domain_and_selector(store: &Shared) {
    for (of, domain, selector) in [
        (OTHER_TENANT, "example.com", "x"),
        (TENANT, "example.org", "a"),
        (TENANT, "example.com", "b"),
        (TENANT, "example.com", "a"),
    ] {
        assert_eq!(create(store, key(of, domain, selector)).await, ChangeResult::Done);
    }
    let list = async |tenant: Option<&TenantId>, domain: Option<&str>| -> Vec<String> {
        let keys = store.dkim_keys(tenant, domain).await.unwrap();
        keys.iter().map(|key| format!("{}/{}/{}", key.tenant, key.domain, key.selector)).collect()
    };
    let mine = ["acme/example.com/a", "acme/example.com/b", "acme/example.org/a"];
    assert_eq!(list(Some(&tenant()), None).await, mine);
    assert_eq!(list(Some(&tenant()), Some("example.com")).await, mine[..2]);
    assert_eq!(list(None, None).await, [&mine[..], &["globex/example.com/x"]].concat());
    assert_eq!(list(None, Some("example.com")).await, [mine[0], mine[1], "globex/example.com/x"]);
    assert!(list(Some(&tenant()), Some("example.net")).await.is_empty());
}
