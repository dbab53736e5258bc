//! Users, their sessions, and the chain of the audit log.

use std::sync::Arc;

use postway_domain::{
    User, UserRole, UserTenants,
    id::{AuditId, SessionId, UserId},
    user::{UserCredentials, UserIdentity},
};

use super::{
    Shared,
    sample::{at, tenant},
    stage::{all_at_once, direct},
};
use crate::record::{AuditEntry, AuditLine, ChangeResult, DirectoryChange, UserKey, UserSession};

/// A user with this name who may read one tenant.
pub fn user(number: u8, name: &str) -> User {
    User {
        id: UserId::from_bytes([number; 16]),
        name: name.parse().unwrap(),
        display_name: "Ada Größe".to_owned(),
        email: Some(format!("{name}@example.net")),
        role: UserRole::Operator,
        tenants: UserTenants::Named([tenant()].into()),
        read_content: true,
        identity: None,
        credentials: UserCredentials {
            password: Some("$argon2id$…".to_owned()),
            totp_step: 7,
            recovery: vec!["a".to_owned()],
            ..UserCredentials::default()
        },
        disabled_at: None,
        created_at: at(1),
        updated_at: at(2),
        version: 1,
    }
}

fn admin(number: u8, name: &str) -> User {
    User { role: UserRole::Admin, tenants: UserTenants::All, ..user(number, name) }
}

/// The next version of a user, with a change.
fn changed(user: &User, change: impl FnOnce(&mut User)) -> DirectoryChange {
    let mut next = User { version: user.version + 1, ..user.clone() };
    change(&mut next);
    DirectoryChange::UpdateUser(next, user.version)
}

/// A session of this user.
pub fn session(number: u8, user: &User, ends_at: i64) -> UserSession {
    UserSession {
        id: SessionId::from_bytes([number; 16]),
        user: user.id,
        began_at: at(1),
        ends_at: at(ends_at),
        seen_at: at(1),
        way: "password".to_owned(),
        address: Some("192.0.2.1".to_owned()),
        agent: None,
    }
}

async fn create(store: &Shared, user: &User) {
    assert_eq!(direct(store, DirectoryChange::CreateUser(user.clone())).await, ChangeResult::Done);
}

async fn begin(store: &Shared, session: &UserSession) {
    let begun = DirectoryChange::BeginUserSession(session.clone());
    assert_eq!(direct(store, begun).await, ChangeResult::Done);
}

/// By each of the ways to find it.
pub async fn a_user_reads_back_whole(store: &Shared) {
    let identity = UserIdentity { issuer: "https://id.example".to_owned(), subject: "Größe".to_owned() };
    let ada = User { identity: Some(identity.clone()), ..user(1, "ada") };
    let root = admin(2, "root");
    create(store, &ada).await;
    create(store, &root).await;
    let email = UserKey::Email("ada@example.net".to_owned());
    for key in [UserKey::Id(ada.id), UserKey::Name(ada.name.clone()), UserKey::Identity(identity), email] {
        assert_eq!(store.user(&key).await.unwrap().as_ref(), Some(&ada), "{key:?}");
    }
    assert_eq!(store.user(&UserKey::Name("nobody".parse().unwrap())).await.unwrap(), None);
    assert_eq!(store.users(None, 9).await.unwrap(), [ada.clone(), root.clone()]);
    assert_eq!(store.users(Some(&ada.name), 1).await.unwrap(), [root]);
    // Two with one address: it names neither of them.
    let twin = User { email: ada.email.clone(), ..user(3, "twin") };
    create(store, &twin).await;
    assert_eq!(store.user(&UserKey::Email("ada@example.net".to_owned())).await.unwrap(), None);
}

/// A name and an identity are one person's.
pub async fn a_name_and_an_identity_are_taken_once(store: &Shared) {
    let identity = UserIdentity { issuer: "https://id.example".to_owned(), subject: "1".to_owned() };
    let ada = User { identity: Some(identity.clone()), ..user(1, "ada") };
    create(store, &ada).await;
    for taken in [user(2, "ada"), User { identity: Some(identity.clone()), ..user(3, "eve") }] {
        assert_eq!(direct(store, DirectoryChange::CreateUser(taken)).await, ChangeResult::Exists);
    }
    let eve = user(4, "eve");
    create(store, &eve).await;
    let taking = changed(&eve, |eve| eve.identity = Some(identity.clone()));
    assert_eq!(direct(store, taking).await, ChangeResult::Exists);
    // Her own identity is no obstacle to a change of hers.
    assert_eq!(direct(store, changed(&ada, |ada| ada.email = None)).await, ChangeResult::Done);
}

/// Of several changes at once, one is made; the others must read again.
pub async fn a_user_update_needs_the_version_it_read(store: &Shared) {
    let ada = user(1, "ada");
    create(store, &ada).await;
    // A code of an authenticator app is used up by such a change, so it opens once.
    let use_up = || {
        let (store, change) = (store.clone(), changed(&ada, |ada| ada.credentials.totp_step = 8));
        async move { direct(&store, change).await }
    };
    let mut results = all_at_once([use_up(), use_up(), use_up()]).await;
    results.sort_by_key(|result| *result != ChangeResult::Done);
    assert_eq!(results, [ChangeResult::Done, ChangeResult::Stale, ChangeResult::Stale]);
    let stored = store.user(&UserKey::Id(ada.id)).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.credentials.totp_step), (2, 8));
}

/// Neither deleted, nor disabled, nor given less; also when two remove each other at once.
pub async fn the_last_admin_stays(store: &Shared) {
    let (root, ada) = (admin(1, "root"), admin(2, "ada"));
    create(store, &root).await;
    create(store, &user(3, "eve")).await;
    let weaker: [fn(&mut User); 3] = [
        |user| user.role = UserRole::Manager,
        |user| user.tenants = UserTenants::Named([tenant()].into()),
        |user| user.disabled_at = Some(at(5)),
    ];
    for change in weaker {
        assert_eq!(direct(store, changed(&root, change)).await, ChangeResult::InUse);
    }
    assert_eq!(direct(store, DirectoryChange::DeleteUser(root.id)).await, ChangeResult::InUse);
    assert_eq!(direct(store, changed(&root, |root| root.email = None)).await, ChangeResult::Done);
    create(store, &ada).await;
    let delete = |id: UserId| {
        let store = store.clone();
        async move { direct(&store, DirectoryChange::DeleteUser(id)).await }
    };
    let mut results = all_at_once([delete(root.id), delete(ada.id)]).await;
    results.sort_by_key(|result| *result != ChangeResult::Done);
    assert_eq!(results, [ChangeResult::Done, ChangeResult::InUse]);
    let left = store.users(None, 9).await.unwrap();
    assert_eq!(left.iter().filter(|user| user.is_full_admin()).count(), 1);
}

/// One, all of a user's, those of who is disabled or deleted, and those whose time is over.
pub async fn a_users_sessions_are_listed_and_end(store: &Shared) {
    let (ada, eve) = (user(1, "ada"), user(2, "eve"));
    create(store, &ada).await;
    create(store, &eve).await;
    for (number, user) in [(1, &ada), (2, &ada), (3, &eve), (4, &eve)] {
        begin(store, &session(number, user, 100 + i64::from(number))).await;
    }
    let (one, two) = (session(1, &ada, 101), session(2, &ada, 102));
    assert_eq!(store.user_sessions(ada.id).await.unwrap(), [two.clone(), one.clone()]);
    assert_eq!(store.user_session(one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(direct(store, DirectoryChange::TouchUserSession(one.id, at(9))).await, ChangeResult::Done);
    direct(store, DirectoryChange::TouchUserSession(one.id, at(8))).await;
    assert_eq!(store.user_session(one.id).await.unwrap().unwrap().seen_at, at(9));
    assert_eq!(direct(store, DirectoryChange::EndUserSession(one.id)).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::EndUserSession(one.id)).await, ChangeResult::Missing);
    assert_eq!(store.user_session(one.id).await.unwrap(), None);
    // Who is disabled is signed out; who is only changed is not.
    direct(store, changed(&ada, |ada| ada.role = UserRole::Viewer)).await;
    assert_eq!(store.user_sessions(ada.id).await.unwrap().len(), 1);
    let ada = store.user(&UserKey::Id(ada.id)).await.unwrap().unwrap();
    direct(store, changed(&ada, |ada| ada.disabled_at = Some(at(5)))).await;
    assert!(store.user_sessions(ada.id).await.unwrap().is_empty());
    direct(store, DirectoryChange::Forget(at(103))).await;
    assert_eq!(store.user_sessions(eve.id).await.unwrap(), [session(4, &eve, 104)]);
    assert_eq!(direct(store, DirectoryChange::DeleteUser(eve.id)).await, ChangeResult::Done);
    assert!(store.user_sessions(eve.id).await.unwrap().is_empty());
    assert_eq!(direct(store, DirectoryChange::EndUserSessions(eve.id)).await, ChangeResult::Missing);
}

/// Records the n-th entry, about this target.
async fn record(store: &Shared, n: i64, target: &str) {
    let entry = AuditEntry {
        id: AuditId::new(at(n), &mut rand::rng()),
        at: at(n),
        actor: "user:ada".to_owned(),
        tenant: Some(tenant()),
        action: "suppression.create".to_owned(),
        target: target.to_owned(),
        request_id: Some("a\0b".to_owned()),
        detail: Some(r#"{"b":1,"a":"Größe"}"#.to_owned()),
        salt: Some([n as u8; 16]),
    };
    let change = DirectoryChange::Forget(at(0));
    assert_eq!(store.change(change, Some(entry)).await.unwrap(), ChangeResult::Done);
}

/// The whole chain, page by page, each line checked.
async fn chain(store: &Shared) -> Vec<AuditLine> {
    let (mut read, head) = (Vec::new(), store.audit_head().await.unwrap());
    let mut after = 0;
    loop {
        let page = store.audit_lines(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        read.extend(page);
    }
    for line in &read {
        assert!(line.is_intact(), "{line:?}");
    }
    for two in read.windows(2) {
        assert_eq!((two[0].position + 1, two[0].digest), (two[1].position, two[1].previous));
    }
    let (first, last) = (read.first(), read.last());
    assert_eq!(first.map_or(head.trimmed + 1, |line| line.position), head.trimmed + 1);
    assert_eq!(last.map(|line| (line.position, line.digest)), last.map(|_| (head.position, head.digest)));
    read
}

/// However many write at once: one order, no gap, each line bound to the one before.
pub async fn lines_of_the_audit_log_form_a_chain(store: &Shared) {
    assert!(chain(store).await.is_empty());
    let writer = |n: i64| {
        let store: Shared = Arc::clone(store);
        async move {
            for step in 0..5 {
                record(&store, 10 * n + step, "bob@example.net").await;
            }
        }
    };
    all_at_once((1..=4).map(writer)).await;
    let read = chain(store).await;
    assert_eq!(read.len(), 20);
    assert_eq!(read[0].position, 1);
    assert_eq!(store.audit(None, None, 99).await.unwrap().len(), 20);
}

/// The chain is whole from its first kept line, and says up to where it was cut.
pub async fn a_trimmed_and_redacted_chain_is_whole(store: &Shared) {
    for n in 1..=6 {
        record(store, n, if n == 4 { "ada@example.net" } else { "bob@example.net" }).await;
    }
    assert_eq!(store.trim_audit(at(4), 2).await.unwrap(), 2);
    assert_eq!(store.trim_audit(at(4), 9).await.unwrap(), 1);
    let redact = DirectoryChange::RedactAudit {
        tenant: tenant(),
        target: "ada@example.net".to_owned(),
        digest: "digest".to_owned(),
    };
    direct(store, redact).await;
    let read = chain(store).await;
    assert_eq!(read.iter().map(|line| line.position).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!((read[0].entry.target.as_str(), read[0].entry.salt), ("digest", None));
    // It goes on where it was, also when nothing is left of it.
    assert_eq!(store.trim_audit(at(100), 9).await.unwrap(), 3);
    assert!(chain(store).await.is_empty());
    record(store, 200, "bob@example.net").await;
    assert_eq!(chain(store).await[0].position, 7);
}
