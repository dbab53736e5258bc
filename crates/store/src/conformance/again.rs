//! What another opening of the same database sees: after a restart, and beside the first.

use postway_domain::AccountLimits;

use super::{
    Shared, fan_out, limits,
    sample::{self, Sample, at, tenant},
    stage::{
        accept, accept_and_claim, activate, claim, commit_wire, delivered, offer, request, suspend, uids,
    },
};
use crate::record::{Acceptance, SuspensionScope};

/// Makes one test per rule. `$make_store` is that of [`conformance_tests!`](crate::conformance_tests);
/// `$again` names an `async fn(&Guard) -> Arc<dyn Store>` that opens the guard's database once more. With
/// `together`, the database is one for many processes.
#[macro_export]
macro_rules! conformance_again_tests {
    ($make_store:ident, $again:ident) => {
        $crate::conformance_again_tests! { @expand $make_store $again
            a_suspension_survives_a_restart
            the_use_of_limits_survives_a_restart
        }
    };
    ($make_store:ident, $again:ident, together) => {
        $crate::conformance_again_tests! { @expand $make_store $again
            a_suspension_survives_a_restart
            the_use_of_limits_survives_a_restart
            a_suspension_holds_on_every_node
            eight_claimers_on_two_nodes_never_exceed_a_limit
            two_nodes_tell_each_page_once
        }
    };
    (@expand $make_store:ident $again:ident $($rule:ident)*) => {
        mod again {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    let (store, guard) = super::$make_store().await;
                    $crate::conformance::stage::open(&store).await;
                    $crate::conformance::again::$rule(store, async || super::$again(&guard).await).await;
                }
            )*
        }
    };
}

fn spring() -> SuspensionScope {
    SuspensionScope::Batch("spring".parse().unwrap())
}

/// A suspension ends when it is lifted, and not by itself.
pub async fn a_suspension_survives_a_restart(store: Shared, again: impl AsyncFn() -> Shared) {
    let uid = accept(&store, Sample::new(1).batch("spring")).await;
    suspend(&store, spring()).await;
    store.close().await;
    drop(store);
    let store = again().await;
    assert!(claim(&store, 1, at(10), 9).await.is_empty());
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 1);
    activate(&store, spring()).await;
    assert_eq!(uids(&claim(&store, 2, at(20), 9).await), [uid]);
    store.close().await;
}

/// What was sent before counts after.
pub async fn the_use_of_limits_survives_a_restart(store: Shared, again: impl AsyncFn() -> Shared) {
    let limits = AccountLimits { per_day: 3, ..AccountLimits::default() };
    limits::accept_many(&store, sample::TENANT, sample::ACCOUNT, 0..5).await;
    assert_eq!(limits::claim(&store, limits, 1, at(0), 2).await.len(), 2);
    store.close().await;
    drop(store);
    let store = again().await;
    assert_eq!(limits::claim(&store, limits, 2, at(5_000), 9).await.len(), 1);
    store.close().await;
}

/// A pause made on one node holds on the other: for claims, for hand-overs and for what is not on the wire
/// yet.
pub async fn a_suspension_holds_on_every_node(store: Shared, again: impl AsyncFn() -> Shared) {
    let other = again().await;
    let mut claimed = accept_and_claim(&other, Sample::new(1).batch("spring"), 1).await;
    assert!(other.claim(request(&sample::relay(), 2, at(0), 1, true)).await.unwrap().is_empty());
    suspend(&store, spring()).await;
    assert!(!commit_wire(&other, &mut claimed, at(1)).await);
    let held = offer(&other, Sample::new(2).batch("spring")).await;
    assert_eq!(held, Acceptance::Accepted { handed_over: false });
    assert!(claim(&other, 3, at(1), 9).await.is_empty());
    activate(&store, spring()).await;
    assert_eq!(offer(&other, Sample::new(3)).await, Acceptance::Accepted { handed_over: true });
    delivered(&other, 1).await;
    assert_eq!(claim(&other, 4, at(1), 9).await.len(), 1);
    other.close().await;
    store.close().await;
}

/// A limit is the account's, not a node's.
pub async fn eight_claimers_on_two_nodes_never_exceed_a_limit(
    store: Shared,
    again: impl AsyncFn() -> Shared,
) {
    let stores = [store, again().await];
    limits::eight_claimers(&stores).await;
    for store in stores {
        store.close().await;
    }
}

/// Both give out places and make notifications; none is made twice, and none is missing.
pub async fn two_nodes_tell_each_page_once(store: Shared, again: impl AsyncFn() -> Shared) {
    let stores = [store, again().await];
    fan_out::told_once(&stores).await;
    for store in stores {
        store.close().await;
    }
}
