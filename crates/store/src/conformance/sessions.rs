//! Sessions of browsers that were ended before their time.

use postway_domain::id::SessionId;

use super::{Shared, sample::at, stage::direct};
use crate::record::{ChangeResult, DirectoryChange};

/// A session from its number.
fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

/// Twice does no harm: a person may press the button again.
pub async fn a_session_is_ended_once_and_alone(store: &Shared) {
    assert!(!store.is_session_ended(session(1)).await.unwrap());
    assert_eq!(direct(store, DirectoryChange::EndSession(session(1), at(100))).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::EndSession(session(1), at(900))).await, ChangeResult::Already);
    assert!(store.is_session_ended(session(1)).await.unwrap());
    assert!(!store.is_session_ended(session(2)).await.unwrap());
}

/// What is kept is bounded by the sessions that a cookie could still stand for.
pub async fn an_ended_session_is_forgotten_when_its_time_is_over(store: &Shared) {
    for (number, ms) in [(1, 100), (2, 200)] {
        direct(store, DirectoryChange::EndSession(session(number), at(ms))).await;
    }
    direct(store, DirectoryChange::Forget(at(100))).await;
    assert!(!store.is_session_ended(session(1)).await.unwrap());
    assert!(store.is_session_ended(session(2)).await.unwrap());
}
