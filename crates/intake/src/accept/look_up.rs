//! Step 2, look up: reads what a request refers to: the tenant's settings, the account, the template, the
//! recipient and the signing keys. Everything that must be awaited happens here, so that checking and
//! composing are pure.
//!
//! Refuses nothing itself, but fails while the store does not answer. An unknown account or template is a
//! fault that the checks report.

use std::sync::Arc;

use postway_domain::{
    Clock, EmailAddress, KnownRecipient, MailLocale, NamedAddress, RecipientKey, TemplateName, TenantId,
    key::KeyRestrictions, secret::SecretKey,
};
use postway_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{
    context::RequestContext,
    parse::request::{MessageInput, RecipientInput, TemplateInput},
};
use crate::{
    budget::HEAVY_BYTES,
    cache::{
        settings_cache::{AccountLookup, DomainSigners, SettingsCache, TenantProfile},
        template_cache::{TemplateCache, TemplateLookup},
    },
    refusal::{CAPTURES, FieldFault, RefusalCode},
};

/// Everything that was looked up for one message.
pub(crate) struct LookupResult {
    /// The account that the message names, else the tenant's default.
    pub account: AccountLookup,
    /// Whether the routes may choose another account, because the message names none.
    pub by_routes: bool,
    pub profile: Arc<TenantProfile>,
    pub template: Option<TemplateLookup>,
    pub recipient: Option<KnownRecipient>,
    pub signers: DomainSigners,
    /// Whether the subject may have any length if the tenant sets no limit.
    pub any_subject: bool,
    /// Whether `send_at` may be given in words.
    pub spoken_times: bool,
    /// Whether the message was accepted before: everything it refers to existed then.
    pub is_stored: bool,
    /// The restrictions of the caller's key.
    pub restrictions: Option<Arc<KeyRestrictions>>,
}

impl LookupResult {
    /// Whether the style sheet of the message's html is inlined.
    pub(crate) fn inlines_css(&self, request: &MessageInput<'_>) -> bool {
        let of_template = || matches!(&self.template, Some(Ok(template)) if template.inline_css);
        request.inline_css.unwrap_or_else(of_template)
    }

    /// How heavy the work on this request of `bytes` bytes is.
    pub(crate) fn weight(&self, request: &MessageInput<'_>, bytes: usize) -> usize {
        let weight = request.weight(&self.profile.settings.content, bytes);
        match self.inlines_css(request) {
            // A small style sheet can take a second.
            true => weight.max(HEAVY_BYTES + 1),
            false => weight,
        }
    }
}

/// What was settled at acceptance for a message that is composed later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettledChoices {
    /// The template, in the language that was chosen at acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateName>,
    /// The version of the template that was the latest at acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_version: Option<i64>,
    /// Whether the envelope needs SMTPUTF8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub smtputf8: bool,
    /// Whether the subject may have any length if the tenant sets no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_subject: bool,
    /// Whether `send_at` may be given in words, which are relative to the time of acceptance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoken_times: bool,
    /// Whether this was read from the store for a message that exists already.
    #[serde(skip)]
    pub is_stored: bool,
}

/// Looks up what requests refer to, through the caches.
pub(crate) struct MessageLookup {
    store: Arc<dyn Store>,
    pub(crate) settings: Arc<SettingsCache>,
    pub(crate) templates: TemplateCache,
}

impl MessageLookup {
    pub(crate) fn new(store: Arc<dyn Store>, secret_key: Arc<SecretKey>, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings: Arc::new(SettingsCache::new(Arc::clone(&store), secret_key, clock)),
            templates: TemplateCache::new(Arc::clone(&store)),
            store,
        }
    }

    /// Looks up everything for a new message of this caller.
    pub(crate) async fn look_up_new(
        &self,
        ctx: &RequestContext,
        request: &MessageInput<'_>,
    ) -> Result<LookupResult, StoreError> {
        let RequestContext { any_subject, spoken_times, .. } = *ctx;
        let settled = SettledChoices { any_subject, spoken_times, ..SettledChoices::default() };
        let looked_up = self.look_up(&ctx.tenant, request, request.account.as_deref(), settled).await?;
        Ok(LookupResult {
            account: refuse_capture(looked_up.account, ctx),
            restrictions: ctx.restrictions.clone(),
            ..looked_up
        })
    }

    /// The account that mail of this caller names, else the tenant's default.
    pub(crate) async fn account_for(
        &self,
        ctx: &RequestContext,
        account: Option<&str>,
    ) -> Result<AccountLookup, StoreError> {
        Ok(refuse_capture(self.settings.account(&ctx.tenant, account).await?, ctx))
    }

    /// Looks up everything that a request refers to. The account is the request's, or the one that was
    /// settled on when the message was accepted.
    pub(crate) async fn look_up(
        &self,
        tenant: &TenantId,
        request: &MessageInput<'_>,
        account: Option<&str>,
        settled: SettledChoices,
    ) -> Result<LookupResult, StoreError> {
        let recipient = match &request.recipient {
            Some(recipient) => self.find_recipient(tenant, &recipient.0).await?,
            None => None,
        };
        let profile = self.settings.profile(tenant).await?;
        let template = match &request.template {
            Some(template) => {
                let locales = locales_of(request, recipient.as_ref(), &profile);
                Some(self.find_template(tenant, &template.0, &settled, &locales).await?)
            }
            None => None,
        };
        Ok(LookupResult {
            account: self.settings.account(tenant, account).await?,
            by_routes: account.is_none(),
            signers: self.signers_of(tenant, author(request, &profile)).await?,
            profile,
            template,
            recipient,
            any_subject: settled.any_subject,
            spoken_times: settled.spoken_times,
            is_stored: settled.is_stored,
            restrictions: None,
        })
    }

    /// The signers for mail of this author; none if the author is not a valid mailbox.
    pub(crate) async fn signers_of(
        &self,
        tenant: &TenantId,
        from: Option<&str>,
    ) -> Result<DomainSigners, StoreError> {
        match from.and_then(|from| from.parse::<NamedAddress>().ok()) {
            Some(from) => self.settings.signers(tenant, from.address().domain()).await,
            None => Ok(Arc::default()),
        }
    }

    async fn find_template(
        &self,
        tenant: &TenantId,
        request: &TemplateInput<'_>,
        settled: &SettledChoices,
        locales: &[MailLocale],
    ) -> Result<TemplateLookup, StoreError> {
        // Its language was chosen together with its version, so that a template created since changes
        // nothing.
        if let (Some(name), version @ Some(_)) = (&settled.template, settled.template_version) {
            return self.templates.find_exactly(tenant, name, version, locales).await;
        }
        let Some(name) = request.name.as_deref() else {
            return Ok(Err(FieldFault::new("template.name", "is missing: name the template")));
        };
        match name.parse::<TemplateName>() {
            Ok(name) => {
                let version = request.version.or(settled.template_version);
                match settled.template_version {
                    // Accepted by an earlier version, which knew no languages.
                    Some(_) => self.templates.find_exactly(tenant, &name, version, locales).await,
                    None => self.templates.find(tenant, &name, version, locales).await,
                }
            }
            Err(error) => Ok(Err(FieldFault::new("template.name", error.to_string()))),
        }
    }

    /// The entry of the tenant's directory for a message's recipient, deleted or not; `None` if there is no
    /// such entry.
    async fn find_recipient(
        &self,
        tenant: &TenantId,
        request: &RecipientInput<'_>,
    ) -> Result<Option<KnownRecipient>, StoreError> {
        let key = match (request.id.as_deref().map(str::parse), request.external_id.as_deref()) {
            (Some(Ok(id)), _) => RecipientKey::Id(id),
            (None, Some(external)) => RecipientKey::External(external.to_owned()),
            (Some(Err(_)) | None, _) => return Ok(None),
        };
        self.store.recipient(tenant, &key).await
    }
}

/// The languages to try for a message: its own or its recipient's, then the tenant's. A text that is no
/// language is a fault of the checks.
fn locales_of(
    request: &MessageInput<'_>,
    recipient: Option<&KnownRecipient>,
    profile: &TenantProfile,
) -> Vec<MailLocale> {
    let given = request.locale.as_deref().and_then(|locale| locale.parse().ok());
    let wanted = given.or_else(|| recipient.and_then(|recipient| recipient.locale.clone()));
    MailLocale::chain(wanted.as_ref(), profile.settings.locale.as_ref())
}

/// Replaces an account that would capture the mail by a fault, if this caller's mail must leave.
fn refuse_capture(found: AccountLookup, ctx: &RequestContext) -> AccountLookup {
    match found {
        Ok(account) if ctx.refuses_capture && account.capture_reason => Err(CAPTURES.to_owned()),
        found => found,
    }
}

/// The author of a message: the request's, or else the tenant's default.
pub(crate) fn author<'a>(request: &'a MessageInput<'_>, profile: &'a TenantProfile) -> Option<&'a str> {
    request.from.as_deref().or(profile.settings.default_from.as_deref())
}

/// Checks the recipient that a message names against the directory and against its `to`.
pub(crate) fn recipient_faults(
    request: &RecipientInput<'_>,
    known: Option<&KnownRecipient>,
    to: &[NamedAddress],
) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if request.id.is_none() && request.external_id.is_none() {
        let fault = FieldFault::new("recipient", "give its id or its external_id");
        faults.push(fault.coded(RefusalCode::InvalidPayload));
    }
    let is_to =
        |address: &str| to.iter().any(|mailbox| EmailAddress::is_same(mailbox.address().as_str(), address));
    if let Some(email) = request.email.as_deref()
        && !is_to(email)
    {
        let fault = FieldFault::new("recipient.email", "must be the address in `to`");
        faults.push(fault.coded(RefusalCode::InvalidPayload));
    }
    match known {
        Some(known) if known.deleted_at.is_some() => {
            faults.push(FieldFault::new("recipient", "is deleted: it gets no mail"));
        }
        Some(known) if !is_to(&known.address) => {
            let fault = FieldFault::new("recipient", "has another address in the directory than `to`");
            faults.push(fault.coded(RefusalCode::InvalidEmail));
        }
        Some(known) => {
            let external = request.external_id.as_deref();
            if request.id.is_some() && external.is_some() && external != known.external_id.as_deref() {
                faults.push(FieldFault::new(
                    "recipient.external_id",
                    "belongs to another recipient than its id",
                ));
            }
        }
        // The directory is optional: only our own ids must be in it.
        None if request.id.is_some() => {
            faults
                .push(FieldFault::new("recipient.id", "there is no such recipient; see GET /v1/recipients"));
        }
        None => {}
    }
    faults
}
