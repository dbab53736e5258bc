//! The address of a subscriber, and the credentials of calls to it.

use std::sync::Arc;

use postway_domain::{
    Subscriber, SubscriberKind, Tenant, Time,
    secret::SecretKey,
    tenant::{RemoteAuth, TenantSecrets},
};
use postway_net::http::{HttpAuth, parse_url};
use postway_store::{
    Store, StoreError,
    record::{DueSubscriber, NotificationKey},
};
use serde::Deserialize;
use url::Url;

use crate::signature::WebhookSecret;

/// A subscriber, as read for its latest claim.
#[derive(Clone, Debug)]
pub(crate) struct SubscriberTarget {
    /// The subscriber.
    pub subscriber: Subscriber,
    /// How to reach it, or why that is impossible: its calls then fail with this text.
    pub access: Result<SubscriberAccess, String>,
}

/// How to reach a subscriber.
#[derive(Clone, Debug)]
pub(crate) struct SubscriberAccess {
    /// The URL of the subscriber.
    pub url: Url,
    /// The secrets that sign its calls; empty for a tenant's own client.
    pub secrets: Vec<WebhookSecret>,
    /// The credentials of its calls.
    pub auth: HttpAuth,
}

impl SubscriberTarget {
    /// Reads a subscriber, and for a tenant's own client the tenant's settings; `None` if it is gone.
    pub(crate) async fn read(
        store: &dyn Store,
        key: &SecretKey,
        due: &DueSubscriber,
        now: Time,
    ) -> Result<Option<Arc<Self>>, StoreError> {
        let Some(subscriber) = store.subscriber(&due.tenant, &due.subscriber).await? else { return Ok(None) };
        let access = match subscriber.id.as_str() == Subscriber::CLIENT {
            true => match store.tenant(&due.tenant).await? {
                Some(tenant) => client(&tenant, key),
                None => return Ok(None),
            },
            false => webhook(&subscriber, key, now),
        };
        Ok(Some(Arc::new(Self { subscriber, access })))
    }

    /// The kind of the subscriber, which decides the form of its calls.
    pub(crate) fn kind(&self) -> SubscriberKind {
        self.subscriber.kind
    }
}

/// The subscriber that a notification is due to.
pub(crate) fn subscriber_of(key: &NotificationKey) -> DueSubscriber {
    DueSubscriber { tenant: key.tenant.clone(), subscriber: key.subscriber.clone() }
}

/// A stored secret: alone, or with the time until which it still signs.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredSecret {
    Always(String),
    Until { secret: String, until: Option<Time> },
}

/// How to reach a webhook that was created as such.
pub(crate) fn webhook(
    subscriber: &Subscriber,
    key: &SecretKey,
    now: Time,
) -> Result<SubscriberAccess, String> {
    let url = parse_url(&subscriber.url).map_err(|error| error.to_string())?;
    let place = Subscriber::sealing_context(&subscriber.tenant, &subscriber.id);
    let sealed = subscriber.secrets.as_ref().ok_or("the webhook has no secret: rotate it")?;
    let opened = key.open(&place, sealed).map_err(|error| error.to_string())?;
    let kept: Vec<StoredSecret> =
        serde_json::from_str(&opened).map_err(|_| "the webhook's secrets are unreadable: rotate them")?;
    let in_use = kept.into_iter().filter_map(|kept| match kept {
        StoredSecret::Always(secret) => Some(secret),
        StoredSecret::Until { secret, until } => until.is_none_or(|until| now < until).then_some(secret),
    });
    let secrets: Result<Vec<_>, _> = in_use.map(|secret| WebhookSecret::parse(&secret)).collect();
    let secrets = secrets.map_err(|error| error.to_string())?;
    match secrets.is_empty() {
        true => Err("the webhook has no secret: rotate it".to_owned()),
        false => Ok(SubscriberAccess { url, secrets, auth: HttpAuth::None }),
    }
}

/// How to reach a tenant's `client_sync`.
fn client(tenant: &Tenant, key: &SecretKey) -> Result<SubscriberAccess, String> {
    let remote = tenant.settings.client_sync.as_ref().ok_or("the tenant has no client_sync: set it")?;
    let text = format!("{}{}", remote.url.trim_end_matches('/'), remote.path.as_deref().unwrap_or_default());
    let url = parse_url(&text).map_err(|error| error.to_string())?;
    let secrets = match &tenant.secret {
        Some(sealed) => {
            let opened = key.open(&Tenant::sealing_context(&tenant.id), sealed);
            let opened = opened.map_err(|error| error.to_string())?;
            serde_json::from_str(&opened).map_err(|_| "the tenant's secrets are unreadable: set them anew")?
        }
        None => TenantSecrets::default(),
    };
    let secret = secrets.client_sync.clone().unwrap_or_default();
    let auth = match remote.auth {
        RemoteAuth::None => HttpAuth::None,
        RemoteAuth::Bearer => HttpAuth::bearer(secret),
        RemoteAuth::Basic => HttpAuth::basic(remote.username.clone().unwrap_or_default(), secret),
    };
    Ok(SubscriberAccess { url, secrets: Vec::new(), auth })
}

#[cfg(test)]
mod tests {
    use postway_domain::subscriber::EventFilter;

    use super::*;

    #[test]
    fn an_earlier_secret_signs_until_its_time_and_one_must() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let id: postway_domain::id::SubscriberId = "hook".parse().unwrap();
        let tenant: postway_domain::TenantId = "acme".parse().unwrap();
        let at = Time::from_millis;
        let with = |secrets: &str| Subscriber {
            secrets: Some(key.seal(&Subscriber::sealing_context(&tenant, &id), secrets).unwrap()),
            tenant: tenant.clone(),
            id: id.clone(),
            kind: SubscriberKind::Webhook,
            url: "https://example.com/hook".to_owned(),
            events: EventFilter::default(),
            active: true,
            disabled_reason: None,
            description: None,
            quiet_until: None,
            version: 1,
            created_at: at(0),
            updated_at: at(0),
        };
        let both = with(r#"["whsec_AAAA",{"secret":"whsec_AAAB","until":"1970-01-01T00:00:01Z"}]"#);
        let count = |now| webhook(&both, &key, at(now)).map(|access| access.secrets.len());
        assert_eq!((count(999), count(1_000)), (Ok(2), Ok(1)));
        for unusable in ["[]", "{}", r#"["AAAA"]"#, r#"[{"secret":"whsec_AAAB","until":0}]"#] {
            let refused = webhook(&with(unusable), &key, at(1_000)).err();
            assert!(refused.is_some_and(|reason| reason.contains("rotate")), "{unusable}");
        }
    }
}
