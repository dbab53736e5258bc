//! Tokens that accounts and mailboxes sign in with.

use postway_domain::{
    Tenant,
    oauth::{OAuthOwner, OAuthState},
    secret::SealedSecret,
};

use super::{
    Shared, mailboxes,
    sample::{self, OTHER_ACCOUNT, OTHER_TENANT, TENANT, at},
    stage::direct,
};
use crate::record::{ChangeResult, DirectoryChange};

/// The state at some version of the tokens of an account that has no mail.
pub fn state(tenant: &str, version: i64, tokens: &[u8]) -> OAuthState {
    OAuthState {
        owner: OAuthOwner::account(&tenant.parse().unwrap(), &OTHER_ACCOUNT.parse().unwrap()),
        tokens: Some(SealedSecret(tokens.to_vec())),
        renewing_until: Some(at(30_000)),
        version,
        updated_at: at(version),
    }
}

async fn put(store: &Shared, state: &OAuthState, expected: Option<i64>) -> ChangeResult {
    direct(store, DirectoryChange::PutOAuthState(state.clone(), expected)).await
}

/// Two nodes that would renew the same tokens: the second learns that it is late, and what the first wrote
/// stays.
pub async fn tokens_are_written_by_whoever_knows_the_last_version(store: &Shared) {
    let first = state(TENANT, 1, b"one");
    assert_eq!(store.oauth_state(&first.owner).await.unwrap(), None);
    assert_eq!(put(store, &first, Some(1)).await, ChangeResult::Stale, "there is none to follow");
    assert_eq!(put(store, &first, None).await, ChangeResult::Done);
    assert_eq!(put(store, &state(TENANT, 1, b"other"), None).await, ChangeResult::Exists);
    let next = OAuthState { renewing_until: None, ..state(TENANT, 2, b"two") };
    assert_eq!(put(store, &next, Some(1)).await, ChangeResult::Done);
    assert_eq!(put(store, &state(TENANT, 2, b"late"), Some(1)).await, ChangeResult::Stale);
    assert_eq!(store.oauth_state(&first.owner).await.unwrap(), Some(next.clone()));
    let elsewhere = OAuthState { tokens: None, ..state(OTHER_TENANT, 7, b"") };
    assert_eq!(put(store, &elsewhere, None).await, ChangeResult::Done);
    let mut all = store.oauth_states().await.unwrap();
    all.sort_by(|a, b| a.owner.cmp(&b.owner));
    let mut expected = vec![next, elsewhere];
    expected.sort_by(|a, b| a.owner.cmp(&b.owner));
    assert_eq!(all, expected);
}

/// An account or a mailbox of the same name that is made later must not find them.
pub async fn tokens_go_with_their_account_mailbox_or_tenant(store: &Shared) {
    let tenant: postway_domain::TenantId = TENANT.parse().unwrap();
    let of_account = state(TENANT, 1, b"one");
    let mailbox = mailboxes::mailbox(TENANT, "bounces");
    let of_mailbox =
        OAuthState { owner: OAuthOwner::mailbox(&tenant, &mailbox.id), ..state(TENANT, 1, b"two") };
    let of_other = state(OTHER_TENANT, 1, b"three");
    let key = crate::record::MailboxKey { tenant: tenant.clone(), mailbox: mailbox.id.clone() };
    assert_eq!(direct(store, DirectoryChange::CreateMailbox(mailbox)).await, ChangeResult::Done);
    for state in [&of_account, &of_mailbox, &of_other] {
        assert_eq!(put(store, state, None).await, ChangeResult::Done);
    }
    direct(store, DirectoryChange::DeleteMailbox(key)).await;
    let account = sample::key(TENANT, OTHER_ACCOUNT);
    assert_eq!(direct(store, DirectoryChange::DeleteAccount(account)).await, ChangeResult::Done);
    assert_eq!(store.oauth_states().await.unwrap(), std::slice::from_ref(&of_other));
    let other: Tenant = store.tenant(&of_other.owner.tenant).await.unwrap().unwrap();
    direct(store, DirectoryChange::DeleteTenant(other.id.clone(), at(5))).await;
    while direct(store, DirectoryChange::PurgeTenant(other.id.clone(), 100)).await == ChangeResult::Done {}
    assert_eq!(store.oauth_states().await.unwrap(), []);
}
