//! What a request refers to: its tenant's settings, its account, its template, its recipient, its signers. All that must
//! be waited for is looked up here, so that checking and composing are pure.

use std::sync::Arc;

use postway_domain::{
    EmailAddress, KnownRecipient, Mailbox, RecipientKey, TemplateName, TenantId, key::KeyRestrictions,
    secret::SecretKey,
};
use postway_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{
    context::RequestContext,
    parse::request::{MessageRequest, RecipientRequest, TemplateRequest},
};
use crate::{
    cache::{
        settings_cache::{Directory, House, Lookup, Signers},
        template_cache::{Found, Shelf},
    },
    refusal::{CAPTURES, Code, FieldError},
};

/// What was looked up for one message.
pub(crate) struct Surroundings {
    pub route: Lookup,
    pub house: Arc<House>,
    pub template: Option<Found>,
    pub recipient: Option<KnownRecipient>,
    pub signers: Signers,
    /// Whether its subject may be of any length where the tenant says nothing.
    pub any_subject: bool,
    /// Whether its `send_at` may be in words.
    pub spoken_times: bool,
    /// Whether it was accepted before: what it refers to was there then.
    pub is_stored: bool,
    /// Whom the key that brought it may send from and to.
    pub restrictions: Option<Arc<KeyRestrictions>>,
}

/// What was settled when a message was accepted that is composed later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    /// The version of the template that was the latest then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_version: Option<i64>,
    /// Whether its envelope needs SMTPUTF8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub smtputf8: bool,
    /// Whether its subject may be of any length where the tenant says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_subject: bool,
    /// Whether its `send_at` may be in words, which count from its acceptance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoken_times: bool,
    /// Whether this was read from the store, and the message is not a new one.
    #[serde(skip)]
    pub is_stored: bool,
}

/// Looks up what requests refer to, through the caches.
pub(crate) struct MessageLookup {
    store: Arc<dyn Store>,
    pub(crate) settings: Directory,
    pub(crate) templates: Shelf,
}

impl MessageLookup {
    pub(crate) fn new(store: Arc<dyn Store>, secret_key: Arc<SecretKey>) -> Self {
        Self {
            settings: Directory::new(Arc::clone(&store), secret_key),
            templates: Shelf::new(Arc::clone(&store)),
            store,
        }
    }

    /// Looks up everything for a new message of this caller.
    pub(crate) async fn look_up_new(
        &self,
        ctx: &RequestContext,
        request: &MessageRequest<'_>,
    ) -> Result<Surroundings, StoreError> {
        let RequestContext { any_subject, spoken_times, .. } = *ctx;
        let settled = Settled { any_subject, spoken_times, ..Settled::default() };
        let looked_up = self.look_up(&ctx.tenant, request, request.account.as_deref(), settled).await?;
        Ok(Surroundings {
            route: refuse_capture(looked_up.route, ctx),
            restrictions: ctx.restrictions.clone(),
            ..looked_up
        })
    }

    /// The account for mail of this caller.
    pub(crate) async fn route_for(
        &self,
        ctx: &RequestContext,
        account: Option<&str>,
    ) -> Result<Lookup, StoreError> {
        Ok(refuse_capture(self.settings.route(&ctx.tenant, account).await?, ctx))
    }

    /// Looks up everything that a request refers to. The account is the request's, or the one that was settled on when
    /// the message was accepted.
    pub(crate) async fn look_up(
        &self,
        tenant: &TenantId,
        request: &MessageRequest<'_>,
        account: Option<&str>,
        settled: Settled,
    ) -> Result<Surroundings, StoreError> {
        let template = match &request.template {
            Some(template) => Some(self.find_template(tenant, &template.0, settled).await?),
            None => None,
        };
        let recipient = match &request.recipient {
            Some(recipient) => self.find_recipient(tenant, &recipient.0).await?,
            None => None,
        };
        let house = self.settings.house(tenant).await?;
        Ok(Surroundings {
            route: self.settings.route(tenant, account).await?,
            signers: self.signers_of(tenant, author(request, &house)).await?,
            house,
            template,
            recipient,
            any_subject: settled.any_subject,
            spoken_times: settled.spoken_times,
            is_stored: settled.is_stored,
            restrictions: None,
        })
    }

    /// Who signs mail of this author; nobody, where it is none.
    pub(crate) async fn signers_of(
        &self,
        tenant: &TenantId,
        from: Option<&str>,
    ) -> Result<Signers, StoreError> {
        match from.and_then(|from| from.parse::<Mailbox>().ok()) {
            Some(from) => self.settings.signers(tenant, from.address().domain()).await,
            None => Ok(Arc::default()),
        }
    }

    async fn find_template(
        &self,
        tenant: &TenantId,
        request: &TemplateRequest<'_>,
        settled: Settled,
    ) -> Result<Found, StoreError> {
        let Some(name) = request.name.as_deref() else {
            return Ok(Err(FieldError::new("template.name", "is missing: name the template")));
        };
        match name.parse::<TemplateName>() {
            Ok(name) => {
                self.templates.find(tenant, &name, request.version.or(settled.template_version)).await
            }
            Err(error) => Ok(Err(FieldError::new("template.name", error.to_string()))),
        }
    }

    /// The entry of the directory that a message is for, deleted or not; none where nothing of it is known.
    async fn find_recipient(
        &self,
        tenant: &TenantId,
        request: &RecipientRequest<'_>,
    ) -> Result<Option<KnownRecipient>, StoreError> {
        let key = match (request.id.as_deref().map(str::parse), request.external_id.as_deref()) {
            (Some(Ok(id)), _) => RecipientKey::Id(id),
            (None, Some(external)) => RecipientKey::External(external.to_owned()),
            (Some(Err(_)) | None, _) => return Ok(None),
        };
        self.store.recipient(tenant, &key).await
    }
}

/// Replaces an account that would capture the mail by a fault, if this caller's mail must leave.
fn refuse_capture(found: Lookup, ctx: &RequestContext) -> Lookup {
    match found {
        Ok(route) if ctx.must_leave && route.captures_unasked => Err(CAPTURES.to_owned()),
        found => found,
    }
}

/// Whom a message is from, as it says itself or else as its tenant does.
pub(crate) fn author<'a>(request: &'a MessageRequest<'_>, house: &'a House) -> Option<&'a str> {
    request.from.as_deref().or(house.settings.default_from.as_deref())
}

/// Checks the recipient that a message names against the directory and against its `to`.
pub(crate) fn recipient_faults(
    request: &RecipientRequest<'_>,
    known: Option<&KnownRecipient>,
    to: &[Mailbox],
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if request.id.is_none() && request.external_id.is_none() {
        let fault = FieldError::new("recipient", "give its id or its external_id");
        faults.push(fault.coded(Code::InvalidPayload));
    }
    let is_to =
        |address: &str| to.iter().any(|mailbox| EmailAddress::is_same(mailbox.address().as_str(), address));
    if let Some(email) = request.email.as_deref()
        && !is_to(email)
    {
        let fault = FieldError::new("recipient.email", "must be the address in `to`");
        faults.push(fault.coded(Code::InvalidPayload));
    }
    match known {
        Some(known) if known.deleted_at.is_some() => {
            faults.push(FieldError::new("recipient", "is deleted: it gets no mail"));
        }
        Some(known) if !is_to(&known.address) => {
            let fault = FieldError::new("recipient", "has another address in the directory than `to`");
            faults.push(fault.coded(Code::InvalidEmail));
        }
        Some(known) => {
            let external = request.external_id.as_deref();
            if request.id.is_some() && external.is_some() && external != known.external_id.as_deref() {
                faults.push(FieldError::new(
                    "recipient.external_id",
                    "belongs to another recipient than its id",
                ));
            }
        }
        // The directory is optional: only our own ids must be in it.
        None if request.id.is_some() => {
            faults
                .push(FieldError::new("recipient.id", "there is no such recipient; see GET /v1/recipients"));
        }
        None => {}
    }
    faults
}
