//! Templates by number: the name of a `TemplateId`.
//!
//! A template with an alias is stored under it. Its number is the name of a second entry that refers to it,
//! so that one lookup finds it. The result is trusted for a second, so that a stream of mails does not cost a
//! lookup each.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use postway_domain::{TemplateName, TenantId};
use postway_mime::template::MustachioHead;
use postway_store::StoreError;

use super::message::TranslatedMessage;
use crate::state::AppState;

/// How long the result of a lookup is trusted.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// The most numbers that are remembered.
const NUMBERS_MAX: usize = 10_000;
/// Numbers that are looked up at once.
const TOGETHER: usize = 16;

/// Names of templates that were looked up by number a moment ago.
#[derive(Default)]
pub(super) struct TemplateIdCache(RwLock<HashMap<(TenantId, String), (String, Instant)>>);

impl TemplateIdCache {
    /// Replaces numbers by names. An unknown number stays, for the intake to refuse.
    pub(super) async fn resolve(
        &self,
        app: &AppState,
        tenant: &TenantId,
        messages: impl IntoIterator<Item = &mut TranslatedMessage>,
    ) -> Result<(), StoreError> {
        let mut uses: Vec<_> = messages
            .into_iter()
            .filter_map(|message| message.template.as_mut())
            .filter(|template| template.by_id)
            .collect();
        let numbers: BTreeSet<String> = uses.iter().map(|template| template.name.clone()).collect();
        let names: HashMap<String, String> = futures::stream::iter(numbers)
            .map(|number| async move {
                let name = self.name_of(app, tenant, &number).await?;
                Ok::<_, StoreError>((number, name))
            })
            .buffered(TOGETHER)
            .try_collect()
            .await?;
        for template in &mut uses {
            if let Some(name) = names.get(&template.name) {
                template.name.clone_from(name);
            }
        }
        Ok(())
    }

    async fn name_of(&self, app: &AppState, tenant: &TenantId, number: &str) -> Result<String, StoreError> {
        let Ok(name) = number.parse::<TemplateName>() else { return Ok(number.to_owned()) };
        let key = (tenant.clone(), number.to_owned());
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some((name, seen)) = seen
            && seen.elapsed() < BELIEVED_FOR
        {
            return Ok(name);
        }
        let found = app.store.template(tenant, &name, None).await?;
        let head = found.as_ref().and_then(|template| MustachioHead::split(&template.subject));
        let name = head.and_then(|(head, _)| head.stands_for).unwrap_or_else(|| number.to_owned());
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NUMBERS_MAX {
            names.clear();
        }
        names.insert(key, (name.clone(), Instant::now()));
        Ok(name)
    }
}
