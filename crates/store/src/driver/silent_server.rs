//! What is asked of a server that fell silent ends all the same: for the tests of databases behind a network.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use postway_domain::MessageUid;

use crate::{
    conformance::{sample, stage},
    error::StoreError,
    port::Store,
    record::MessageKey,
};

/// Longer than any wait for a connection and an answer may be.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// Something that is asked of a store.
type Question<'a> = (&'a str, BoxFuture<'a, Result<(), StoreError>>);

/// Asks all kinds of things and expects every one to end as unavailable. Time does not pass, it is skipped
/// while all wait: this needs a runtime of one thread.
pub async fn everything_ends(store: &Arc<dyn Store>, uid: MessageUid) {
    tokio::time::pause();
    let (tenant, now) = (sample::tenant(), sample::at(1));
    let key = MessageKey::Uid(uid);
    let beat = stage::beat_of(1);
    let asked: Vec<Question<'_>> = vec![
        ("body", Box::pin(async { store.body(uid).await.map(drop) })),
        ("raw", Box::pin(async { store.raw(&tenant, uid).await.map(drop) })),
        ("payload", Box::pin(async { store.payload(&tenant, uid).await.map(drop) })),
        ("message", Box::pin(async { store.message(&tenant, &key).await.map(drop) })),
        ("briefs", Box::pin(async { store.briefs(&tenant, &[uid]).await.map(drop) })),
        ("queue_state", Box::pin(async { store.queue_state(now).await.map(drop) })),
        ("stalled", Box::pin(async { store.stalled(&[], now, 9).await.map(drop) })),
        ("overdue", Box::pin(async { store.overdue(now, 9).await.map(drop) })),
        ("stats", Box::pin(async { store.stats(None, now).await.map(drop) })),
        ("tenant", Box::pin(async { store.tenant(&tenant).await.map(drop) })),
        ("beat", Box::pin(async { store.beat(&beat).await.map(drop) })),
        ("ping", Box::pin(store.ping())),
        ("apply", Box::pin(async { store.apply(Vec::new()).await.map(drop) })),
        ("accept", Box::pin(async { store.accept(vec![sample::Sample::new(2).build()]).await.map(drop) })),
    ];
    for (what, answer) in asked {
        let ended = tokio::time::timeout(LONGEST, answer).await;
        let ended = ended.unwrap_or_else(|_| panic!("{what} waits for ever"));
        assert!(ended.as_ref().is_err_and(StoreError::is_transient), "{what}: {ended:?}");
    }
    let closed = tokio::time::timeout(LONGEST, store.close()).await;
    assert!(closed.is_ok(), "closing waits for ever");
}
