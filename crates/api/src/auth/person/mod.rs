//! People: how a user proves who it is, and the sessions in which it is believed.
//!
//! A session is a row of the store, which the cookie only names. What a session may do is read with its user,
//! and trusted for two seconds: a session that was ended, a role that was taken away and a user who was
//! disabled have no effect any more after that, on every node; on the node that made the change, at once.

pub(crate) mod invitation;
pub(crate) mod pace;
pub(crate) mod passkey;
pub(crate) mod password;
pub mod provider;
pub(crate) mod totp;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use postway_domain::{Time, User, id::SessionId};
use postway_store::{
    StoreError,
    record::{DirectoryChange, UserKey, UserSession},
};

use crate::state::AppState;

/// How long an answer of the store is trusted.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Beyond this many entries, expired ones are removed; if none is, all are.
const REMEMBERED_MAX: usize = 10_000;
/// How often the use of one session is written.
const TOUCH_EVERY: Duration = Duration::from_secs(5 * 60);

/// A user with the session that it signed in to.
#[derive(Debug)]
pub(crate) struct SignedInUser {
    /// The user, as it was a moment ago.
    pub(crate) user: User,
    /// The session.
    pub(crate) session: UserSession,
}

/// What the store said about a session.
struct KnownSession {
    asked_at: Instant,
    /// The changes that this process had made by then: after another one the store is asked again.
    generation: u64,
    signed_in: Option<Arc<SignedInUser>>,
}

/// A cache of sessions with their users. Only sessions whose cookie opens are looked up.
#[derive(Default)]
pub(crate) struct UserSessionCache(Mutex<HashMap<SessionId, KnownSession>>);

impl UserSessionCache {
    /// The user of this session, if it goes on and the user is not disabled.
    pub(crate) async fn find(
        &self,
        id: SessionId,
        app: &AppState,
    ) -> Result<Option<Arc<SignedInUser>>, StoreError> {
        let (asked_at, generation, now) = (Instant::now(), app.store.generation(), app.clock.now());
        let signed_in = match self.recall(id, generation) {
            Some(signed_in) => signed_in,
            None => {
                let signed_in = read(id, app).await?.map(Arc::new);
                self.remember(id, KnownSession { asked_at, generation, signed_in: signed_in.clone() });
                signed_in
            }
        };
        let valid = signed_in.filter(|one| one.session.ends_at > now && one.user.disabled_at.is_none());
        if let Some(one) = &valid {
            note_use(&one.session, now, app).await;
        }
        Ok(valid)
    }

    /// What was read a moment ago, if nothing was changed here since.
    fn recall(&self, id: SessionId, generation: u64) -> Option<Option<Arc<SignedInUser>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.get(&id).filter(|known| known.is_fresh() && known.generation == generation);
        fresh.map(|known| known.signed_in.clone())
    }

    fn remember(&self, id: SessionId, session: KnownSession) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, known| known.is_fresh());
        }
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(id, session);
    }
}

impl KnownSession {
    fn is_fresh(&self) -> bool {
        self.asked_at.elapsed() < FRESH_FOR
    }
}

async fn read(id: SessionId, app: &AppState) -> Result<Option<SignedInUser>, StoreError> {
    let Some(session) = app.store.user_session(id).await? else { return Ok(None) };
    let user = app.store.user(&UserKey::Id(session.user)).await?;
    Ok(user.map(|user| SignedInUser { user, session }))
}

/// Writes now and then that the session is in use. It is only for people to see, so a failure is no error.
async fn note_use(session: &UserSession, now: Time, app: &AppState) {
    if now.since(session.seen_at) < TOUCH_EVERY {
        return;
    }
    let touch = DirectoryChange::TouchUserSession(session.id, now);
    if let Err(error) = app.store.change(touch, None).await {
        tracing::debug!(%error, "when a session was last used could not be written");
    }
}
