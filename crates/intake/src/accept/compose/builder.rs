//! Builds the mail of a checked request: names it, chooses its envelope sender, and composes it unless files
//! must be fetched first.

use postway_domain::{
    EmailAddress, MailStream, MessageUid, Time,
    id::{BatchCode, RisingUids},
    secret::SecretKey,
    verp::VerpKey,
};
use postway_mime::deliverability::{DeliverabilityOptions, deliverability_fields};

use super::{
    AssembledMail, CheckedAs, EnvelopeSender, MailNames, attachments_here, compose_checked, needs_smtputf8,
    unsubscribe::{
        PATH, PLACEHOLDER, SUBJECT, UnsubscribeFields, UnsubscribeKey, UnsubscribeLink, is_unsubscribe,
    },
    validated,
};
use crate::{
    accept::{
        check::{CheckedMessage, ReturnPath},
        look_up::{LookupResult, SettledChoices},
    },
    cache::settings_cache::{SendingAccount, TenantProfile},
    refusal::Refusal,
};

/// How far ids may be ahead of the clock, in milliseconds. Lists and retention sort by the times in them.
const UIDS_AHEAD_MS_MAX: u64 = 1_000;

/// Names mail, chooses its envelope sender, and composes it.
pub(crate) struct MailBuilder {
    mail_domain: String,
    public_url: Option<String>,
    verp_key: VerpKey,
    unsubscribe_key: UnsubscribeKey,
    /// The ids of forwarded mail: of two that are accepted one after the other, the second is higher.
    forward_uids: RisingUids,
    /// The ids of all other mail: those of one call rise, so that its messages leave in their order.
    uids: RisingUids,
}

impl MailBuilder {
    pub(crate) fn new(mail_domain: String, public_url: Option<String>, secret_key: &SecretKey) -> Self {
        Self {
            mail_domain,
            public_url,
            verp_key: VerpKey::new(secret_key),
            unsubscribe_key: UnsubscribeKey::new(secret_key),
            forward_uids: RisingUids::default(),
            uids: RisingUids::within(UIDS_AHEAD_MS_MAX),
        }
    }

    /// The domain of Message-IDs when the author's domain cannot be used.
    pub(crate) fn mail_domain(&self) -> &str {
        &self.mail_domain
    }

    /// Where readers of mail reach this gateway, if the operator says so.
    pub(crate) fn public_url(&self) -> Option<&str> {
        self.public_url.as_deref()
    }

    /// A new uid for mail, higher than those given before.
    pub(crate) fn new_uid(&self, now: Time) -> MessageUid {
        self.uids.next(now, &mut rand::rng())
    }

    /// A new uid for forwarded mail.
    pub(crate) fn new_forward_uid(&self, now: Time) -> MessageUid {
        self.forward_uids.next(now, &mut rand::rng())
    }

    /// The names of new mail from this address.
    pub(crate) fn names(&self, uid: MessageUid, from: &EmailAddress) -> MailNames {
        MailNames::for_new(uid, from, &self.mail_domain)
    }

    /// Chooses the envelope sender of a message; `given` is what the request asks for.
    pub(crate) fn envelope_sender<'a>(
        &'a self,
        given: Option<&'a ReturnPath>,
        (account, profile): (&'a SendingAccount, &'a TenantProfile),
        uid: MessageUid,
        from: &'a EmailAddress,
    ) -> EnvelopeSender<'a> {
        EnvelopeSender { given, account, profile, uid, verp_key: &self.verp_key, from }
    }

    /// The mail of a checked request: composed, unless something must be fetched for it first.
    pub(crate) fn build(
        &self,
        checked: &mut CheckedMessage<'_>,
        looked_up: &LookupResult,
        payload_bytes: usize,
        (uid, now): (MessageUid, Time),
    ) -> Result<AssembledMail, Refusal> {
        let from = checked.from.address();
        let names = self.names(uid, from);
        let recipients = checked.recipients.envelope();
        let parties = (&*checked.account, &*looked_up.profile);
        let sender = self.envelope_sender(checked.return_path.as_ref(), parties, names.uid, from);
        let sender = sender.to(&recipients);
        let (composed, settled) = if checked.needs_preparation() {
            let template = checked.content.template.as_ref();
            let settled = SettledChoices {
                template: template.and_then(|template| template.name.parse().ok()),
                template_version: template.map(|template| template.version),
                smtputf8: needs_smtputf8(&sender, &recipients),
                any_subject: looked_up.any_subject,
                spoken_times: looked_up.spoken_times,
                is_stored: false,
            };
            (None, Some(serde_json::to_string(&settled).expect("a number and flags are JSON")))
        } else {
            self.add_unsubscribe(checked, &looked_up.profile, &names);
            let attachments = attachments_here(checked);
            (Some(compose_checked(checked, &attachments, &names, now, &looked_up.signers)?), None)
        };
        Ok(AssembledMail {
            names,
            subject: checked.content.subject.to_string(),
            sender,
            recipients,
            composed,
            known_recipient: checked.known_recipient,
            sensitive: checked.sensitive,
            validated: validated(checked, CheckedAs::Request, payload_bytes),
            settled,
        })
    }

    /// Opens the token of an unsubscribe link, if it is one of ours.
    pub(crate) fn read_unsubscribe(&self, token: &str) -> Option<UnsubscribeLink> {
        self.unsubscribe_key.read(token)
    }

    /// Whether readers reach this gateway by https, as one-click links need.
    pub(crate) fn serves_readers(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// The unsubscribe fields for the one reader of a message, if the stream of its batch offers any.
    pub(crate) fn unsubscribe_fields(
        &self,
        profile: &TenantProfile,
        batch: Option<&BatchCode>,
        uid: MessageUid,
        reader: &str,
    ) -> Option<UnsubscribeFields> {
        let stream = batch.and_then(MailStream::of_batch)?;
        let exits = profile.streams.get(&stream)?;
        if !exits.by_link && exits.mailto.is_none() {
            return None;
        }
        let (tenant, address) = (profile.tenant.clone(), reader.to_lowercase());
        let token = self.unsubscribe_key.token(&UnsubscribeLink { tenant, stream, uid, address })?;
        let public = self.public_url.as_deref().filter(|_| exits.by_link && self.serves_readers());
        let url = public.map(|public| format!("{}{PATH}{token}", public.trim_end_matches('/')));
        let mailto = exits.mailto.as_ref().map(|to| format!("{to}?subject={SUBJECT}%20{token}"));
        let wanted = DeliverabilityOptions {
            unsubscribe_url: url.as_deref(),
            unsubscribe_mailto: mailto.as_deref(),
            one_click: url.is_some(),
            ..DeliverabilityOptions::default()
        };
        // An address that makes the header line too long gets no unsubscribe fields.
        let fields = deliverability_fields(&wanted).ok().filter(|fields| !fields.is_empty())?;
        Some(UnsubscribeFields { fields, url })
    }

    /// Adds the unsubscribe fields of its stream to a message that has one reader and no such fields of its
    /// own.
    pub(crate) fn add_unsubscribe(
        &self,
        checked: &mut CheckedMessage<'_>,
        profile: &TenantProfile,
        names: &MailNames,
    ) {
        let is_own = |(name, _): &(String, String)| is_unsubscribe(name);
        if checked.content.headers.iter().any(is_own) {
            return;
        }
        let envelope = checked.recipients.envelope();
        let [reader] = envelope.as_slice() else { return };
        let ways = self.unsubscribe_fields(
            profile,
            checked.terms.batch.as_ref(),
            names.uid,
            reader.address.as_str(),
        );
        let Some(ways) = ways else { return };
        let content = &mut checked.content;
        content.headers.extend(ways.fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(url) = ways.url {
            for text in [&mut content.text, &mut content.html].into_iter().flatten() {
                if text.contains(PLACEHOLDER) {
                    *text = text.replace(PLACEHOLDER, &url).into();
                }
            }
        }
    }
}
