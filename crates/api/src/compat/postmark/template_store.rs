//! Templates of this API: stored among the tenant's own, in Mustachio, under their alias.
//!
//! A template with an alias has two entries: itself, and one under its number that refers to it (see
//! `template_id`). One without an alias is stored under its number. The number is derived from the alias or
//! the name, so that a template that is deleted and created again has the same number.

use postway_domain::{Template, TemplateName, TenantId};
use postway_mime::template::MustachioHead;
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Value, json};

use super::{
    error::{PostmarkFault, theirs},
    server::number_of,
};
use crate::{
    auth::Caller,
    http::{error::ApiError, request_id::RequestId},
    state::AppState,
};

/// How many numbers are tried for a new template, and how often the next version if another request created
/// it meanwhile.
const NUMBERS_TRIED_MAX: u32 = 16;
const TRIES_MAX: u32 = 5;

/// The content of a template to store.
#[derive(Clone)]
pub(super) struct TemplateDraft {
    pub(super) alias: Option<TemplateName>,
    /// The display name.
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
    pub(super) layout: Option<String>,
    pub(super) is_layout: bool,
}

/// The caller who changes templates.
pub(super) struct TemplateAuthor<'a> {
    pub(super) app: &'a AppState,
    pub(super) caller: &'a Caller,
    pub(super) request_id: &'a RequestId,
}

fn no_template(given: &str) -> ApiError {
    let shown: String = given.chars().take(TemplateName::BYTES_MAX).collect();
    PostmarkFault::NoTemplate
        .error("", format!("The template was not found: `{shown}` is not valid as an id or alias here"))
}

/// The head of a template in Mustachio; `None` for one that was written elsewhere.
pub(super) fn head_of(template: &Template) -> Option<MustachioHead> {
    MustachioHead::split(&template.subject).map(|(head, _)| head)
}

/// The template with this number or alias.
pub(super) async fn find(app: &AppState, tenant: &TenantId, given: &str) -> Result<Template, ApiError> {
    let name: TemplateName = given.parse().map_err(|_| no_template(given))?;
    let found = app.store.template(tenant, &name, None).await?.ok_or_else(|| no_template(given))?;
    let Some(name) = head_of(&found).and_then(|head| head.stands_for) else { return Ok(found) };
    let name: TemplateName = name.parse().map_err(|_| no_template(given))?;
    app.store.template(tenant, &name, None).await?.ok_or_else(|| no_template(given))
}

/// A template as in lists; `None` for an entry that only refers to one.
pub(super) fn listed(template: &Template) -> Option<Value> {
    let head = head_of(template).unwrap_or_default();
    if head.stands_for.is_some() {
        return None;
    }
    let name = template.name.as_str();
    // A template that was written elsewhere has a number if that is its name.
    let id = head.id.or_else(|| name.parse().ok());
    let alias = Some(name).filter(|name| id.is_none_or(|id| *name != id.to_string()));
    Some(json!({
        "TemplateId": id,
        "Name": template.description.as_deref().unwrap_or(name),
        "Alias": alias,
        "Active": true,
        "TemplateType": if head.is_layout { "Layout" } else { "Standard" },
        "LayoutTemplate": head.layout,
    }))
}

/// A template with its sources, as they were written.
pub(super) fn shown(template: &Template) -> Value {
    let mut shown = listed(template).unwrap_or_default();
    let subject = MustachioHead::split(&template.subject).map_or(template.subject.as_str(), |(_, rest)| rest);
    for (name, value) in [
        ("Subject", json!(subject)),
        ("HtmlBody", json!(template.html.as_deref().or(template.mjml.as_deref()))),
        ("TextBody", json!(template.text)),
        ("AssociatedServerId", json!(number_of(&template.tenant))),
    ] {
        shown[name] = value;
    }
    shown
}

/// A number for a new template. Clients read it as a 32-bit integer.
fn number(seed: &str, attempt: u32) -> u64 {
    let bytes = seed.bytes().chain(attempt.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    1_000_000 + (hash ^ (hash >> 32)) % 2_000_000_000
}

impl TemplateDraft {
    /// The template to store, as its first version.
    pub(super) fn template(
        &self,
        app: &AppState,
        tenant: &TenantId,
        name: TemplateName,
        id: Option<u64>,
    ) -> Template {
        let head =
            MustachioHead { id, layout: self.layout.clone(), is_layout: self.is_layout, stands_for: None };
        Template {
            tenant: tenant.clone(),
            name,
            version: 1,
            subject: format!("{head}{}", self.subject),
            html: self.html.clone(),
            text: self.text.clone(),
            mjml: None,
            layout: None,
            inline_css: false,
            description: Some(self.name.clone()),
            sample: None,
            created_at: app.clock.now(),
        }
    }
}

/// The name of the entry for a number.
fn name_of(id: u64) -> Result<TemplateName, ApiError> {
    id.to_string().parse().map_err(ApiError::internal)
}

fn taken(alias: &TemplateName) -> ApiError {
    PostmarkFault::AliasTaken
        .error("Alias", format!("`{alias}` is the alias of another template: choose another"))
}

impl TemplateAuthor<'_> {
    fn tenant(&self) -> &TenantId {
        &self.caller.tenant
    }

    /// Checks a template, and that its layout is one.
    async fn check(&self, template: &Template, draft: &TemplateDraft) -> Result<(), ApiError> {
        if let Some(layout) = &draft.layout {
            let found = find(self.app, self.tenant(), layout).await.ok();
            if draft.is_layout || !found.as_ref().and_then(head_of).is_some_and(|head| head.is_layout) {
                let message =
                    format!("`{layout}` must be the alias of a layout, and of a standard template's");
                return Err(PostmarkFault::TemplateInvalid.error("LayoutTemplate", message));
            }
        }
        let checked = self.app.door.check_template(template).await.map_err(ApiError::from).map_err(theirs);
        checked.map_err(|error| match error.details() {
            [] => error,
            details => {
                let invalid =
                    details.iter().map(|one| PostmarkFault::TemplateInvalid.at(&one.field, &*one.message));
                ApiError::invalid(invalid.collect())
            }
        })
    }

    /// Stores a version; false if another request was faster.
    async fn store(&self, template: Template) -> Result<bool, ApiError> {
        let action = if template.version == 1 { "template.create" } else { "template.update" };
        let detail = Some(json!({"version": template.version}));
        let (tenant, name) = (self.tenant(), template.name.as_str());
        let entry = self.app.audit(&self.caller.actor, Some(tenant), action, name, self.request_id, detail);
        let changed = self.app.store.change(DirectoryChange::CreateTemplate(template), Some(entry)).await?;
        Ok(changed == ChangeResult::Done)
    }

    async fn remove(&self, name: &TemplateName) -> Result<(), ApiError> {
        let tenant = self.tenant();
        let (action, name) = ("template.delete", name.clone());
        let entry =
            self.app.audit(&self.caller.actor, Some(tenant), action, name.as_str(), self.request_id, None);
        self.app.store.change(DirectoryChange::DeleteTemplate(tenant.clone(), name), Some(entry)).await?;
        Ok(())
    }

    /// The entry for a number that refers to a template, in its first version.
    fn stand_in(&self, id: u64, alias: &TemplateName) -> Result<Template, ApiError> {
        let head =
            MustachioHead { id: Some(id), stands_for: Some(alias.to_string()), ..MustachioHead::default() };
        Ok(Template {
            tenant: self.tenant().clone(),
            name: name_of(id)?,
            version: 1,
            subject: head.to_string(),
            html: None,
            text: None,
            mjml: None,
            layout: None,
            inline_css: false,
            description: None,
            sample: None,
            created_at: self.app.clock.now(),
        })
    }

    pub(super) async fn create(&self, draft: TemplateDraft) -> Result<Template, ApiError> {
        let seed = draft.alias.as_ref().map_or(draft.name.as_str(), TemplateName::as_str);
        let first = number(seed, 0);
        let name = draft.alias.clone().map_or_else(|| name_of(first), Ok)?;
        let template = draft.template(self.app, self.tenant(), name, Some(first));
        self.check(&template, &draft).await?;
        if let Some(alias) = &draft.alias
            && self.app.store.template(self.tenant(), alias, None).await?.is_some()
        {
            return Err(taken(alias));
        }
        for attempt in 0..NUMBERS_TRIED_MAX {
            let id = number(seed, attempt);
            let Some(alias) = &draft.alias else {
                let template = draft.template(self.app, self.tenant(), name_of(id)?, Some(id));
                if self.store(template.clone()).await? {
                    return Ok(template);
                }
                continue;
            };
            if !self.store(self.stand_in(id, alias)?).await? {
                continue;
            }
            let template = draft.template(self.app, self.tenant(), alias.clone(), Some(id));
            if self.store(template.clone()).await? {
                return Ok(template);
            }
            self.remove(&name_of(id)?).await?;
            return Err(taken(alias));
        }
        Err(ApiError::conflict("no number is free for this template: give it another name or alias"))
    }

    /// Creates the next version of a template, under another alias if it has a new one.
    pub(super) async fn edit(&self, current: &Template, draft: TemplateDraft) -> Result<Template, ApiError> {
        let id = head_of(current).and_then(|head| head.id);
        let name = draft.alias.clone().unwrap_or_else(|| current.name.clone());
        let template = draft.template(self.app, self.tenant(), name.clone(), id);
        self.check(&template, &draft).await?;
        if name == current.name {
            return self.next_version(template).await;
        }
        if !self.store(template.clone()).await? {
            return Err(taken(&name));
        }
        // From now on the number refers to the new entry; only then the old one is deleted.
        if let Some(id) = id {
            self.next_version(self.stand_in(id, &name)?).await?;
        }
        if id.is_none_or(|id| current.name.as_str() != id.to_string()) {
            self.remove(&current.name).await?;
        }
        Ok(template)
    }

    async fn next_version(&self, template: Template) -> Result<Template, ApiError> {
        for _ in 0..TRIES_MAX {
            let latest = self.app.store.template(self.tenant(), &template.name, None).await?;
            let version = latest.map_or(1, |latest| latest.version + 1);
            let template = Template { version, ..template.clone() };
            if self.store(template.clone()).await? {
                return Ok(template);
            }
        }
        Err(ApiError::conflict("the template is being changed by others; read it and try again"))
    }

    pub(super) async fn delete(&self, template: &Template) -> Result<(), ApiError> {
        self.remove(&template.name).await?;
        match head_of(template).and_then(|head| head.id) {
            Some(id) if template.name.as_str() != id.to_string() => self.remove(&name_of(id)?).await,
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_into_32_bits_and_differ_by_attempt() {
        for seed in ["welcome", "", "Ä"] {
            let numbers: Vec<u64> = (0..8).map(|attempt| number(seed, attempt)).collect();
            assert!(
                numbers.iter().all(|number| (1_000_000..=i32::MAX as u64).contains(number)),
                "{numbers:?}"
            );
            assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
        }
    }
}
