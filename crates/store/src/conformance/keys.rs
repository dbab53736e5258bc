//! API keys.

use std::sync::Arc;

use postway_domain::{
    ApiKey, KeyDigest, KeyScope,
    key::KeyRestrictions,
    scram::{SALT_BYTES, ScramVerifier},
};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
    stage::direct,
};
use crate::record::{ChangeResult, DirectoryChange};

/// A key of a tenant, created this many milliseconds after the start.
pub fn key(tenant: &str, id: &str, created_ms: i64) -> ApiKey {
    ApiKey {
        id: id.to_owned(),
        tenant: tenant.parse().unwrap(),
        name: format!("Größe of {id}"),
        digest: KeyDigest::of(id.as_bytes()),
        scopes: vec![KeyScope::Send, KeyScope::Manage],
        networks: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        created_at: at(created_ms),
        expires_at: Some(at(90_000)),
        last_used_at: None,
        revoked_at: None,
        scram: None,
        created_by: Some("user:größe".to_owned()),
        restrictions: Some(Arc::new(KeyRestrictions {
            senders: vec!["größe.example".parse().unwrap()],
            recipients: vec!["*.test.example".parse().unwrap(), "qa-*@example.com".parse().unwrap()],
        })),
    }
}

async fn create(store: &Shared, key: ApiKey) -> ChangeResult {
    direct(store, DirectoryChange::CreateKey(key)).await
}

async fn find(store: &Shared, id: &str) -> ApiKey {
    store.key(&KeyDigest::of(id.as_bytes())).await.unwrap().expect("the key is stored")
}

/// Whose it is, what it may do, from where and until when.
pub async fn a_key_is_found_by_its_digest(store: &Shared) {
    let whole = key(TENANT, "whole", 1);
    assert_eq!(create(store, whole.clone()).await, ChangeResult::Done);
    assert_eq!(find(store, "whole").await, whole);
    let bare = ApiKey {
        scopes: vec![],
        networks: vec![],
        expires_at: None,
        restrictions: None,
        ..key(TENANT, "bare", 2)
    };
    assert_eq!(create(store, bare.clone()).await, ChangeResult::Done);
    assert_eq!(find(store, "bare").await, bare);
    assert_eq!(store.key(&KeyDigest::of(b"nobody's")).await.unwrap(), None);
}

/// With what it is proven against, where it has that; keys from before SCRAM have none.
pub async fn a_key_is_found_by_its_id_with_its_verifier(store: &Shared) {
    let verifier = Some(ScramVerifier::of("pencil", [9; SALT_BYTES]));
    let proven = ApiKey { scram: verifier, ..key(TENANT, "proven", 1) };
    assert_eq!(create(store, proven.clone()).await, ChangeResult::Done);
    assert_eq!(create(store, key(OTHER_TENANT, "older", 2)).await, ChangeResult::Done);
    assert_eq!(store.key_by_id("proven").await.unwrap(), Some(proven.clone()));
    assert_eq!(find(store, "proven").await, proven);
    assert_eq!(store.keys(&tenant()).await.unwrap(), [proven]);
    assert_eq!(store.key_by_id("older").await.unwrap(), Some(key(OTHER_TENANT, "older", 2)));
    assert_eq!(store.key_by_id("PROVEN").await.unwrap(), None, "ids differ by case");
    assert_eq!(store.key_by_id("nobody's").await.unwrap(), None);
}

/// Across tenants, too: an id or a digest names one key.
pub async fn a_key_id_and_a_digest_are_taken_once(store: &Shared) {
    assert_eq!(create(store, key(TENANT, "first", 1)).await, ChangeResult::Done);
    let same_id = ApiKey { digest: KeyDigest::of(b"other"), ..key(OTHER_TENANT, "first", 2) };
    assert_eq!(create(store, same_id).await, ChangeResult::Exists);
    let same_digest = ApiKey { id: "other".to_owned(), ..key(OTHER_TENANT, "first", 2) };
    assert_eq!(create(store, same_digest).await, ChangeResult::Exists);
    assert_eq!(find(store, "first").await, key(TENANT, "first", 1));
    assert!(store.keys(&other_tenant()).await.unwrap().is_empty());
}

/// One tenant's, the revoked among them.
pub async fn keys_are_listed_by_tenant_oldest_first(store: &Shared) {
    for (tenant, id, ms) in
        [(TENANT, "z", 1), (TENANT, "b", 2), (TENANT, "a", 2), (OTHER_TENANT, "theirs", 0), (TENANT, "0", 3)]
    {
        assert_eq!(create(store, key(tenant, id, ms)).await, ChangeResult::Done);
    }
    let revoke = DirectoryChange::RevokeKey(tenant(), "b".to_owned(), at(5));
    assert_eq!(direct(store, revoke).await, ChangeResult::Done);
    let ids: Vec<String> = store.keys(&tenant()).await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["z", "a", "b", "0"]);
    assert_eq!(store.keys(&other_tenant()).await.unwrap(), [key(OTHER_TENANT, "theirs", 0)]);
}

/// Revoking another tenant's key finds no key.
pub async fn a_key_is_revoked_once_and_by_its_tenant_only(store: &Shared) {
    assert_eq!(create(store, key(TENANT, "mine", 1)).await, ChangeResult::Done);
    let revoke = |tenant, id: &str, ms| DirectoryChange::RevokeKey(tenant, id.to_owned(), at(ms));
    assert_eq!(direct(store, revoke(other_tenant(), "mine", 5)).await, ChangeResult::Missing);
    assert_eq!(direct(store, revoke(tenant(), "nobody", 5)).await, ChangeResult::Missing);
    assert_eq!(find(store, "mine").await.revoked_at, None);
    assert_eq!(direct(store, revoke(tenant(), "mine", 6)).await, ChangeResult::Done);
    assert_eq!(direct(store, revoke(tenant(), "mine", 7)).await, ChangeResult::Missing);
    assert_eq!(find(store, "mine").await.revoked_at, Some(at(6)), "the first revocation counts");
}

/// Nodes write it late and in any order.
pub async fn the_last_use_of_a_key_only_moves_forward(store: &Shared) {
    for id in ["used", "idle"] {
        assert_eq!(create(store, key(TENANT, id, 1)).await, ChangeResult::Done);
    }
    for (ms, expected) in [(20, 20), (10, 20), (30, 30)] {
        let used = vec![("used".to_owned(), at(ms)), ("gone".to_owned(), at(ms))];
        assert_eq!(direct(store, DirectoryChange::TouchKeys(used)).await, ChangeResult::Done);
        assert_eq!(find(store, "used").await.last_used_at, Some(at(expected)));
    }
    assert_eq!(find(store, "idle").await.last_used_at, None);
}
