//! The check for viruses: composed mail with attachments, before it is stored, and received mail.
//!
//! It needs a scanner, which the operator configures. What becomes of mail that could not be scanned is the
//! tenant's choice ([`VirusPolicy`]): it passes, or it waits with its sender. An infected mail is refused with the
//! name of the signature, and nothing of it is stored.

use std::sync::Arc;

use postway_domain::{TenantId, tenant::VirusPolicy};
use postway_mime::reader::ReadMail;
use postway_net::VirusScanner;
use postway_store::{
    StoreError,
    record::{NewMessage, StoredBody},
};

use super::{
    context::{AcceptReceipt, RequestContext},
    door::Door,
};
use crate::refusal::{FieldFault, Refusal, RefusalCode};

/// What a scan of a mail came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirusVerdict {
    /// Nothing was found, or nothing is to be scanned.
    Clean,
    /// This signature matches.
    Infected(String),
    /// It could not be scanned, and passes as the tenant wishes.
    Unscanned(String),
    /// It could not be scanned, and may not pass.
    Withheld(String),
}

impl Door {
    /// Scans mail with this scanner from now on.
    #[must_use]
    pub fn with_virus_scanner(mut self, scanner: Option<Arc<VirusScanner>>) -> Self {
        self.virus_scanner = scanner;
        self
    }

    /// Scans a received mail, whatever it consists of.
    pub async fn scan_received(&self, tenant: &TenantId, raw: &[u8]) -> Result<VirusVerdict, StoreError> {
        let Some(scanner) = &self.virus_scanner else { return Ok(VirusVerdict::Clean) };
        let policy = self.lookup.settings.profile(tenant).await?.settings.virus_policy;
        if policy == VirusPolicy::Off {
            return Ok(VirusVerdict::Clean);
        }
        let verdict = match (scanner.scan(raw).await, policy) {
            (Ok(None), _) => VirusVerdict::Clean,
            (Ok(Some(name)), _) => VirusVerdict::Infected(name),
            (Err(error), VirusPolicy::Closed) => VirusVerdict::Withheld(error.to_string()),
            (Err(error), VirusPolicy::Open | VirusPolicy::Off) => VirusVerdict::Unscanned(error.to_string()),
        };
        let outcome = match &verdict {
            VirusVerdict::Clean => "clean",
            VirusVerdict::Infected(_) => "infected",
            VirusVerdict::Unscanned(why) | VirusVerdict::Withheld(why) => {
                tracing::warn!(%tenant, reason = why, "a mail could not be scanned for viruses");
                "unscanned"
            }
        };
        metrics::counter!("postway_virus_scans_total", "outcome" => outcome).increment(1);
        Ok(verdict)
    }

    /// Refuses composed mail whose attachments are infected, or cannot be scanned.
    pub(crate) async fn check_for_viruses(&self, tenant: &TenantId, raw: &[u8]) -> Result<(), Refusal> {
        if self.virus_scanner.is_none() || ReadMail::read(raw).roles().attachments.is_empty() {
            return Ok(());
        }
        match self.scan_received(tenant, raw).await? {
            VirusVerdict::Clean | VirusVerdict::Unscanned(_) => Ok(()),
            VirusVerdict::Infected(name) => {
                let fault = FieldFault::new("attachments", format!("infected: {name}; remove the file"));
                Err(Refusal::Invalid { details: vec![fault.coded(RefusalCode::Infected)] })
            }
            VirusVerdict::Withheld(_) => {
                Err(Refusal::busy("attachments cannot be checked for viruses now: try again later"))
            }
        }
    }

    async fn check_message(&self, message: &NewMessage) -> Result<(), Refusal> {
        match &message.content.raw {
            // Mail that is still to be composed is checked by the preparer.
            StoredBody::Inline(raw) if !raw.is_empty() => {
                self.check_for_viruses(&message.lane.tenant, raw).await
            }
            StoredBody::Inline(_) | StoredBody::Blob(_) => Ok(()),
        }
    }

    /// Checks and stores one message.
    pub(super) async fn store_one(
        &self,
        ctx: &RequestContext,
        message: NewMessage,
    ) -> Result<AcceptReceipt, Refusal> {
        self.check_message(&message).await?;
        self.writer.store_one(ctx, message).await
    }

    /// Checks each message, and stores those that pass; one answer each, in order.
    pub(super) async fn store_each(
        &self,
        ctx: &RequestContext,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        let (mut passed, mut refused) =
            (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
        for message in messages {
            let verdict = self.check_message(&message).await.err();
            if verdict.is_none() {
                passed.push(message);
            }
            refused.push(verdict);
        }
        let stored = match passed.is_empty() {
            true => Vec::new(),
            false => self.writer.store_all(ctx, passed).await?,
        };
        let mut stored = stored.into_iter();
        let unanswered =
            || Err(StoreError::Unexpected("it did not answer for every message".to_owned()).into());
        Ok(refused
            .into_iter()
            .map(|refusal| match refusal {
                Some(refusal) => Err(refusal),
                None => stored.next().unwrap_or_else(unanswered),
            })
            .collect())
    }

    /// Checks the messages of a call that is accepted as a unit, and stores all of them or none.
    pub(super) async fn store_all_or_none(
        &self,
        ctx: &RequestContext,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<AcceptReceipt, Refusal>>, Refusal> {
        for message in &messages {
            self.check_message(message).await?;
        }
        self.writer.store_all(ctx, messages).await
    }
}
