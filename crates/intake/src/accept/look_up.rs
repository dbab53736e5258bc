//! What a request refers to: its tenant's settings, its account, its template, its recipient, its signers. All that must
//! be waited for is looked up here, so that checking and composing are pure.

use std::sync::Arc;

use postway_domain::{
    EmailAddress, KnownRecipient, Mailbox, RecipientKey, TemplateName, TenantId, key::KeyRestrictions,
};
use postway_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::{
    accept::door::{Door, RequestContext},
    accept::parse::request::{MessageRequest, RecipientRequest, TemplateRequest},
    cache::settings_cache::{House, Lookup, Signers, leaving},
    cache::template_cache::Found,
    refusal::{Code, FieldError},
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

impl Surroundings {
    /// As this sender finds them.
    pub(crate) fn under(self, ctx: &RequestContext) -> Self {
        Self { route: leaving(self.route, ctx), restrictions: ctx.restrictions.clone(), ..self }
    }
}

impl Door {
    /// Looks up all that a request refers to. The account is the request's, or the one that was settled on.
    pub(crate) async fn surroundings(
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
        let house = self.directory.house(tenant).await?;
        Ok(Surroundings {
            route: self.directory.route(tenant, account).await?,
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
            Some(from) => self.directory.signers(tenant, from.address().domain()).await,
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
            Ok(name) => self.shelf.find(tenant, &name, request.version.or(settled.template_version)).await,
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
