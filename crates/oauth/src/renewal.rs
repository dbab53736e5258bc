//! Renews a token: takes the turn among the nodes, calls the server, and stores the result.

use std::time::Duration;

use postway_domain::{
    Time,
    oauth::{OAuthGrant, OAuthState},
};
use postway_store::{
    StoreError,
    record::{ChangeResult, DirectoryChange},
};
use tokio::time::{Instant, sleep};

use crate::{
    crash::crash_point,
    error::TokenError,
    request::{self, CALL_MAX},
    source::{GrantSource, KnownTokens},
    token::{AccessToken, StoredTokens},
};

/// How long a node has the turn: two calls, and the time to store the result. After a crash the next node
/// waits this long.
const TURN: Duration = Duration::from_secs(2 * CALL_MAX.as_secs() + 15);
/// How long to wait for another node's renewal.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often to poll whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The number of attempts to store new tokens, with a doubling pause: about six seconds in all.
const STORE_TRIES: u32 = 6;

/// Returns a token that is not the refused one: another node's, or a new one.
pub(crate) async fn renew(
    source: &GrantSource,
    known: &mut KnownTokens,
    refused: Option<&AccessToken>,
) -> Result<AccessToken, TokenError> {
    let fits = |token: &AccessToken| refused.is_none_or(|refused| !token.is(refused));
    let deadline = Instant::now() + WAIT_MAX;
    let (mine, before) = loop {
        let stored = source.shared.store.oauth_state(&source.grant.owner).await.map_err(store_error)?;
        let before = stored.as_ref().and_then(|state| source.open_tokens(state));
        let now = source.shared.clock.now();
        let others_until = stored.as_ref().and_then(|state| state.renewing_until).filter(|at| *at > now);
        // Tokens that an earlier renewal could not store are stored now, unless there are newer ones.
        known.unsaved.take_if(|unsaved| before.as_ref().is_some_and(|before| !unsaved.is_newer_than(before)));
        if let Some(unsaved) = &known.unsaved
            && others_until.is_none()
            && Instant::now() < deadline
        {
            if write_state(source, stored.as_ref(), Some(unsaved), None, now)
                .await
                .map_err(store_error)?
                .is_some()
            {
                known.unsaved = None;
            }
            continue;
        }
        let token = before.as_ref().map(StoredTokens::access).filter(fits);
        match token {
            Some(token) if token.is_fresh(now) => return Ok(token),
            Some(token) if others_until.is_some() && !token.is_expired(now) => return Ok(token),
            Some(_) | None => {}
        }
        if others_until.is_none() {
            let until = now.plus(TURN);
            let taken = write_state(source, stored.as_ref(), before.as_ref(), Some(until), now).await;
            if let Some(mine) = taken.map_err(store_error)? {
                break (mine, before);
            }
        }
        if Instant::now() >= deadline {
            return Err(TokenError::unavailable("another node has been renewing the token for too long"));
        }
        sleep(POLL_INTERVAL).await;
    };
    request_in_turn(source, known, mine, before).await
}

/// Calls the server during this node's turn.
async fn request_in_turn(
    source: &GrantSource,
    known: &mut KnownTokens,
    mine: OAuthState,
    before: Option<StoredTokens>,
) -> Result<AccessToken, TokenError> {
    let grant = &source.grant;
    let (shared, secrets) = (&source.shared, &grant.secrets);
    let rotated = before.as_ref().and_then(|tokens| tokens.refresh_token.clone());
    let refresh_token = rotated.clone().or_else(|| secrets.refresh_token.clone());
    let asked = request::request_token(
        &source.http,
        &grant.settings,
        secrets,
        refresh_token.as_deref(),
        grant.purpose,
        &grant.username,
        shared.clock.now(),
    );
    let granted = match asked.await {
        Ok(granted) => granted,
        Err(error) => {
            // Ends the turn. If this cannot be written, the turn expires.
            if let Err(error) =
                write_state(source, Some(&mine), before.as_ref(), None, shared.clock.now()).await
            {
                tracing::warn!(%error, "the end of a token's renewal could not be written");
            }
            return Err(error);
        }
    };
    crash_point("oauth_after_answer");
    let is_person = grant.settings.grant == OAuthGrant::RefreshToken;
    let refresh_token = granted.refresh_token.filter(|_| is_person).or(rotated);
    let tokens = StoredTokens::new((&source.fingerprint, &source.consent), &granted.token, refresh_token);
    let mut pause = POLL_INTERVAL / 2;
    for attempt in 1.. {
        match write_state(source, Some(&mine), Some(&tokens), None, shared.clock.now()).await {
            Ok(Some(_)) => return Ok(granted.token),
            // Another node took the turn meanwhile: the next renewal finds the newer tokens.
            Ok(None) => break,
            Err(error) if attempt < STORE_TRIES => {
                tracing::warn!(%error, "new tokens could not be stored; trying again");
                sleep(pause).await;
                pause *= 2;
            }
            Err(_) => break,
        }
    }
    known.unsaved = Some(tokens);
    Err(TokenError::unavailable(
        "a new token was given and could not be stored yet; it is not used before it is",
    ))
}

/// Writes the next state if it has not changed since `stored` was read; returns it if it was written.
async fn write_state(
    source: &GrantSource,
    stored: Option<&OAuthState>,
    tokens: Option<&StoredTokens>,
    renewing_until: Option<Time>,
    now: Time,
) -> Result<Option<OAuthState>, StoreError> {
    let owner = &source.grant.owner;
    let sealed = tokens.map(|tokens| source.seal_tokens(tokens)).transpose()?;
    let expected = stored.map(|state| state.version);
    let state = OAuthState {
        owner: owner.clone(),
        tokens: sealed,
        renewing_until,
        version: expected.unwrap_or(0) + 1,
        updated_at: now,
    };
    let change = DirectoryChange::PutOAuthState(state.clone(), expected);
    Ok((source.shared.store.change(change, None).await? == ChangeResult::Done).then_some(state))
}

fn store_error(error: StoreError) -> TokenError {
    TokenError::unavailable(format!("the tokens cannot be read or stored: {error}"))
}

impl GrantSource {
    /// Decrypts the tokens of a state, if they belong to this grant. Tokens that no key decrypts are ignored.
    fn open_tokens(&self, state: &OAuthState) -> Option<StoredTokens> {
        let text =
            self.shared.secret_key.open(&state.owner.sealing_context(), state.tokens.as_ref()?).ok()?;
        let tokens: StoredTokens = serde_json::from_str(&text).ok()?;
        tokens.for_grant(&self.fingerprint, &self.consent)
    }

    fn seal_tokens(&self, tokens: &StoredTokens) -> Result<postway_domain::secret::SealedSecret, StoreError> {
        let text =
            serde_json::to_string(tokens).map_err(|error| StoreError::Unexpected(error.to_string()))?;
        let place = self.grant.owner.sealing_context();
        self.shared.secret_key.seal(&place, &text).map_err(|error| StoreError::Unexpected(error.to_string()))
    }
}
