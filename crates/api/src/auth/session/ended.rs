//! Sessions that were signed out: a cache of the store's answers.
//!
//! A session signed out on another node works here for as long as an answer is trusted; one signed out here
//! stops at once. Only sessions whose cookie opens are looked up, and the cache is bounded.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use postway_domain::id::SessionId;
use postway_store::{Store, StoreError};

use crate::http::recent_map::RecentMap;

/// How long a session is trusted to continue: as long as a key is.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// Half of the sessions that are cached.
const REMEMBERED_HALF_MAX: usize = 8_192;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionState {
    /// The session was valid at this time.
    GoesOn(Instant),
    /// The session was signed out.
    Ended,
}

/// The cache of sessions.
pub(crate) struct EndedSessions(Mutex<RecentMap<SessionId, SessionState>>);

impl Default for EndedSessions {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(REMEMBERED_HALF_MAX)))
    }
}

impl EndedSessions {
    /// Whether this session was signed out.
    pub(crate) async fn is_ended(&self, id: SessionId, store: &dyn Store) -> Result<bool, StoreError> {
        match self.sessions().get(&id) {
            Some(SessionState::Ended) => return Ok(true),
            Some(SessionState::GoesOn(seen)) if seen.elapsed() < FRESH_FOR => return Ok(false),
            Some(SessionState::GoesOn(_)) | None => {}
        }
        let asked_at = Instant::now();
        let is_ended = store.is_session_ended(id).await?;
        Ok(self.record_state(id, if is_ended { SessionState::Ended } else { SessionState::GoesOn(asked_at) }))
    }

    /// Remembers that a session was signed out here.
    pub(crate) fn record_end(&self, id: SessionId) {
        self.sessions().insert(id, SessionState::Ended);
    }

    /// Caches the store's answer, unless the session was signed out here meanwhile; returns whether it has
    /// ended.
    fn record_state(&self, id: SessionId, state: SessionState) -> bool {
        let mut sessions = self.sessions();
        if sessions.get(&id) == Some(SessionState::Ended) {
            return true;
        }
        sessions.insert(id, state);
        state == SessionState::Ended
    }

    fn sessions(&self) -> MutexGuard<'_, RecentMap<SessionId, SessionState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_answer_does_not_bring_a_session_back() {
        let (ended, id) = (EndedSessions::default(), SessionId::from_bytes([1; 16]));
        let before = SessionState::GoesOn(Instant::now());
        ended.record_end(id);
        assert!(ended.record_state(id, before));
        assert_eq!(ended.sessions().get(&id), Some(SessionState::Ended));
    }
}
