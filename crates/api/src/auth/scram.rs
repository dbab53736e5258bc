//! Keys that are proven by SCRAM-SHA-256 instead of being sent.
//!
//! A user name is the id of a key, or a tenant's id, which means every valid key of that tenant and the admin
//! key; `admin` means the admin key. All keys created under one secret key share a salt, so one challenge
//! serves for all of them; an unknown name gets the same challenge. Every failure gets the same answer.

use std::net::IpAddr;

use postway_domain::{
    ApiKey, TenantId,
    scram::{ITERATIONS, ScramVerifier, salt_of},
};
use postway_intake::smtp::{AdmittedSender, ProvenKey, ScramCandidate, ScramOffer};

use super::{
    DEFAULT_TENANT,
    key_check::{KeyCheck, KeyDenied, may_send},
};
use crate::{http::origin::RequestOrigin, state::AppState};

/// The user name of the admin key.
const ADMIN: &str = "admin";

impl KeyCheck {
    /// The challenge for a client at `peer` under this name, and the keys its answer is checked against.
    pub async fn scram_offer(&self, username: &str, peer: IpAddr) -> Result<ScramOffer, KeyDenied> {
        let app = &self.0;
        if let Some(wait) = app.key_cache.wait(RequestOrigin::direct(peer).client()) {
            return Err(KeyDenied::TooManyWrong(wait));
        }
        let name = if username.is_empty() { DEFAULT_TENANT } else { username };
        let candidates = candidates(app, name).await?;
        let salt = salt_of(&app.secret_key);
        // Keys of an earlier secret key have another salt, and there is one challenge: the newest key's.
        let asked = candidates.last().map(|newest| (newest.verifier.salt, newest.verifier.iterations));
        let (salt, iterations) = asked.unwrap_or((salt, ITERATIONS));
        let same = |one: &ScramCandidate| (one.verifier.salt, one.verifier.iterations) == (salt, iterations);
        let candidates = candidates.into_iter().filter(same).collect();
        Ok(ScramOffer { salt: salt.to_vec(), iterations, candidates })
    }

    /// The tenant that a client at `peer` sends for after proving that it has this key.
    pub async fn sender_proven(&self, key: &ProvenKey, peer: IpAddr) -> Result<AdmittedSender, KeyDenied> {
        let app = &self.0;
        match key {
            ProvenKey::Tenant(digest) => {
                may_send(app.key_cache.valid_digest(*digest, app).await?.as_deref(), peer)
            }
            ProvenKey::Admin(tenant) if app.knows_tenant(tenant).await? => {
                Ok(AdmittedSender::unbound(tenant.clone()))
            }
            ProvenKey::Admin(_) => Err(KeyDenied::Refused("the tenant does not exist any more".to_owned())),
        }
    }

    /// Counts a failed proof as a wrong key, and returns the refusal.
    pub fn refuse_proof(&self, peer: IpAddr) -> KeyDenied {
        self.0.key_cache.count_wrong(RequestOrigin::direct(peer).client());
        KeyDenied::Refused(
            "this key does not open by SCRAM: the user name is the key's id or its tenant, and a key made by a version \
             without SCRAM opens by PLAIN or LOGIN only"
                .to_owned(),
        )
    }
}

/// The keys that a user name means, the newest last.
async fn candidates(app: &AppState, name: &str) -> Result<Vec<ScramCandidate>, KeyDenied> {
    let now = app.clock.now();
    let of_tenant = |key: ApiKey| {
        let verifier = key.scram.clone().filter(|_| key.is_valid(now))?;
        Some(ScramCandidate { verifier, key: ProvenKey::Tenant(key.digest) })
    };
    let of_admin = |verifier: &ScramVerifier, tenant: TenantId| ScramCandidate {
        verifier: verifier.clone(),
        key: ProvenKey::Admin(tenant),
    };
    if let Some(key) = app.store.key_by_id(name).await? {
        return Ok(of_tenant(key).into_iter().collect());
    }
    let named = match name.parse::<TenantId>() {
        Ok(tenant) if app.knows_tenant(&tenant).await? => Some(tenant),
        Ok(_) | Err(_) => None,
    };
    let keys = match &named {
        Some(tenant) => app.store.keys(tenant).await?,
        None => Vec::new(),
    };
    let mut candidates: Vec<_> = keys.into_iter().filter_map(of_tenant).collect();
    let admin_for = match named {
        Some(tenant) => Some(tenant),
        None if name == ADMIN => DEFAULT_TENANT.parse().ok(),
        None => None,
    };
    if let (Some(verifier), Some(tenant)) = (&app.admin_key.scram, admin_for) {
        // In front: after a change of the secret key, the challenge is that of the tenant's newest key.
        candidates.insert(0, of_admin(verifier, tenant));
    }
    Ok(candidates)
}
