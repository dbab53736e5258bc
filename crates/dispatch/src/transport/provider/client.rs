//! Sends one mail through a provider, and checks an account.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use postway_domain::{
    Clock, EmailAddress, MessageUid,
    failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure},
};
use postway_oauth::AccessToken;
use postway_trace::{TraceContext, context::TRACEPARENT};
use reqwest::{Method, RequestBuilder, Url, header};
use secrecy::ExposeSecret;

use super::{
    ProviderCredentials, ProviderSettings,
    answer::ProviderAnswer,
    api::{ProviderApi, ProviderRequest},
    judge::{self, TIMEOUT_CODE, TOO_MANY_RECIPIENTS_CODE},
    mail::{
        ProviderMail, ProviderMailForm, address_to, divide_recipients, fit_for_provider, split_into_fields,
    },
};
use crate::transport::{
    DeliveryEnd, DeliveryResult, MailEnvelope, RecipientReply, WireGate,
    api_call::{ApiCaller, CallTarget, MAIL_BYTES_MAX, UnansweredCall},
    crash_point,
    phase_span::{end_call, phase},
    recipient_list::{INVALID, RecipientBound, choose_recipients, is_address},
    smtp::no_token,
};

/// The pause after "too many requests" without a duration.
const PAUSE_DEFAULT: Duration = Duration::from_secs(5);

/// A client of one provider for one account. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct ProviderClient(Arc<ProviderClientParts>);

struct ProviderClientParts {
    api: Box<dyn ProviderApi>,
    caller: ApiCaller,
    credentials: ProviderCredentials,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.0.caller.base().as_str();
        f.debug_struct("ProviderClient").field("base", &base).finish_non_exhaustive()
    }
}

/// The credential of one call.
enum RequestCredential {
    Nothing,
    Key(String),
    Token(AccessToken),
}

/// A request, and the span that its call is under.
struct CallPlace {
    request: ProviderRequest,
    trace: Option<TraceContext>,
}

/// The result of a call.
struct CallOutcome {
    end: DeliveryEnd,
    pause: Option<Duration>,
    /// Recipients that the provider will not send to, although it accepted the mail.
    left_out: Vec<String>,
}

impl From<DeliveryEnd> for CallOutcome {
    fn from(end: DeliveryEnd) -> Self {
        Self { end, pause: None, left_out: Vec::new() }
    }
}

impl RequestCredential {
    fn secret(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Key(key) => Some(key),
            Self::Token(token) => Some(token.expose()),
        }
    }
}

impl ProviderClient {
    /// Makes a client; nothing is sent yet. Fails, as a fault of the account, if the settings cannot be used.
    /// `clock` says how long a provider's rate window still lasts.
    pub fn new(settings: ProviderSettings, clock: Arc<dyn Clock>) -> Result<Self, SendFailure> {
        let api = settings.api()?;
        let caller = ApiCaller::new(CallTarget {
            base: settings.base(&*api)?,
            timeouts: settings.timeouts,
            timeout_code: TIMEOUT_CODE,
            extra_roots_pem: settings.extra_roots_pem.as_deref(),
            guard: &settings.guard,
            egress: &settings.egress,
        })?;
        Ok(Self(Arc::new(ProviderClientParts { api, caller, credentials: settings.credentials, clock })))
    }

    /// The host and port calls go to, and the path that they take there, for people.
    pub fn route(&self) -> String {
        self.0.caller.route()
    }

    /// The host and port calls go to, for the records of attempts.
    pub fn remote(&self) -> String {
        self.0.caller.remote()
    }

    /// The name of the provider, as shown to people.
    pub fn name(&self) -> &'static str {
        self.0.api.name()
    }

    /// Sends one mail. The returned [`DeliveryResult`] says what is known about each recipient and about the
    /// call.
    pub async fn deliver(
        &self,
        envelope: &MailEnvelope<'_>,
        uid: MessageUid,
        body: &[u8],
        gate: &mut dyn WireGate,
    ) -> DeliveryResult {
        let mut recipients = vec![RecipientReply::NotTried; envelope.recipients.len()];
        let fitted = fit_for_provider(envelope, body, self.0.api.form());
        let (envelope, body, converted) = match &fitted {
            Some(mail) => (mail.envelope(envelope), mail.bytes.as_slice(), mail.converted),
            None => (*envelope, body, &[][..]),
        };
        let prepared = self.prepare(&envelope, uid, body, &mut recipients);
        let CallOutcome { end, pause, left_out } = match prepared {
            Ok(None) => DeliveryEnd::NoRecipients.into(),
            Ok(Some(request)) => {
                let call = CallPlace { request, trace: envelope.trace };
                self.transact(call, gate, &recipients).await
            }
            Err(failure) => {
                // No recipient was named to the provider.
                recipients
                    .iter_mut()
                    .filter(|reply| reply.is_accepted())
                    .for_each(|reply| *reply = RecipientReply::NotTried);
                DeliveryEnd::NotSent(failure).into()
            }
        };
        if matches!(end, DeliveryEnd::Accepted { .. }) {
            refuse_left_out(&left_out, &envelope, &mut recipients);
        }
        DeliveryResult { converted, pause, ..DeliveryResult::new(recipients, end) }
    }

    /// The request for a mail, with a reply for each recipient; `None` if no recipient is left. Mail that the
    /// provider is known not to accept is refused here.
    fn prepare(
        &self,
        envelope: &MailEnvelope<'_>,
        uid: MessageUid,
        body: &[u8],
        recipients: &mut [RecipientReply],
    ) -> Result<Option<ProviderRequest>, SendFailure> {
        let api = &*self.0.api;
        check(envelope, body, api)?;
        let bounds = api.bounds();
        let bound = RecipientBound {
            max: bounds.recipients_max,
            code: TOO_MANY_RECIPIENTS_CODE,
            message: format!("{} takes {} such recipients per call", api.name(), bounds.recipients_max),
        };
        let mut named = choose_recipients(envelope, &bound, recipients);
        if named.is_empty() {
            return Ok(None);
        }
        let fields = match api.form() {
            ProviderMailForm::Fields => {
                let content = split_into_fields(body, api.name())?;
                Some(divide_recipients(content, &mut named, envelope, &bound, recipients))
            }
            ProviderMailForm::Enveloped | ProviderMailForm::Addressed => None,
        };
        let raw = match api.form() {
            ProviderMailForm::Addressed => address_to(body, &named)?,
            ProviderMailForm::Enveloped | ProviderMailForm::Fields => Cow::Borrowed(body),
        };
        let mail = ProviderMail {
            uid,
            idempotency_key: idempotency_key(uid, &named),
            sender: envelope.sender,
            recipients: &named,
            raw,
            fields,
        };
        let request = api.request(&mail)?;
        if request.body.len() > bounds.request_bytes_max {
            let (is, max) = (request.body.len(), bounds.request_bytes_max);
            return Err(too_large(format!("the request has {is} bytes, {} takes {max}", api.name())));
        }
        Ok(Some(request))
    }

    async fn transact(
        &self,
        CallPlace { mut request, trace }: CallPlace,
        gate: &mut dyn WireGate,
        recipients: &[RecipientReply],
    ) -> CallOutcome {
        // The token is fetched before the wire commit: it may take long, and until then nothing is in doubt.
        let sign_in = match self.sign_in().await {
            Ok(sign_in) => sign_in,
            Err(failure) => return DeliveryEnd::NotSent(failure).into(),
        };
        if gate.commit(recipients).await.is_err() {
            return DeliveryEnd::GateRefused.into();
        }
        crash_point!("provider_after_gate");
        let call = phase(trace, "provider call");
        let traceparent = call.context().map(|context| (TRACEPARENT, context.to_string()));
        request.headers.extend(traceparent);
        let mut answer = self.post(&request, &sign_in, gate).await;
        if let (Ok(refused), RequestCredential::Token(token), ProviderCredentials::Token(source)) =
            (&answer, &sign_in, &self.0.credentials)
            && refused.status == 401
        {
            // A token may be revoked before it expires, so another one is requested, once. The refused call
            // sent nothing.
            match source.another(token).await {
                Ok(Some(another)) => {
                    answer = self.post(&request, &RequestCredential::Token(another), gate).await
                }
                Ok(None) => {}
                Err(error) => return DeliveryEnd::NotSent(no_token(&error)).into(),
            }
        }
        crash_point!("provider_after_answer");
        end_call(call, answer.as_ref().map(|answer| answer.status));
        match answer {
            Ok(answer) => {
                let mut content = self.0.api.read(&answer);
                let left_out = std::mem::take(&mut content.left_out);
                let end = judge::judge_answer(&answer, content);
                let pause = answer.pause(self.0.clock.now()).or_else(|| default_pause(&end));
                CallOutcome { end, pause, left_out }
            }
            Err(UnansweredCall::Refused) => DeliveryEnd::GateRefused.into(),
            Err(UnansweredCall::NotWritten(failure)) => DeliveryEnd::NotSent(failure).into(),
            Err(UnansweredCall::Unknown(failure)) => DeliveryEnd::InDoubt(failure).into(),
        }
    }

    async fn sign_in(&self) -> Result<RequestCredential, SendFailure> {
        match &self.0.credentials {
            ProviderCredentials::Nobody => Ok(RequestCredential::Nothing),
            ProviderCredentials::Key(key) => Ok(RequestCredential::Key(key.expose_secret().to_owned())),
            ProviderCredentials::Token(source) => {
                source.token().await.map(RequestCredential::Token).map_err(|error| no_token(&error))
            }
        }
    }

    async fn post(
        &self,
        request: &ProviderRequest,
        sign_in: &RequestCredential,
        gate: &mut dyn WireGate,
    ) -> Result<ProviderAnswer, UnansweredCall> {
        let builder = self.0.caller.request(Method::POST, self.url(&request.path), request.body.len());
        let mut builder =
            self.signed(builder, sign_in).header(header::CONTENT_TYPE, request.content_type.as_str());
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        self.0.caller.send(builder, Some((request.body.clone(), gate))).await.map(ProviderAnswer::from)
    }

    fn signed(&self, builder: RequestBuilder, sign_in: &RequestCredential) -> RequestBuilder {
        match sign_in.secret() {
            Some(secret) => {
                let (name, value) = self.0.api.sign_in(secret);
                builder.header(name, value).header(header::ACCEPT, "application/json")
            }
            None => builder.header(header::ACCEPT, "application/json"),
        }
    }

    /// An address below the provider's base; an empty path gives the base itself.
    fn url(&self, path: &str) -> Url {
        let mut url = self.0.caller.base().clone();
        if !path.is_empty() {
            url.set_path(path);
        }
        url
    }

    /// Checks whether this account may send: connection, TLS, key. Sends nothing. Returns a sentence about
    /// the result.
    pub async fn check(&self) -> Result<String, SendFailure> {
        let api = &*self.0.api;
        let sign_in = self.sign_in().await?;
        let Some(call) = api.check() else {
            return Ok(format!("{} has no call that sends nothing: send a test mail", api.name()));
        };
        let method = if call.form.is_some() { Method::POST } else { Method::GET };
        let mut builder = self.signed(self.0.caller.request(method, self.url(&call.path), 0), &sign_in);
        if let Some(form) = call.form {
            builder = builder.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        }
        let answer = self.0.caller.send(builder, None).await.map_err(|unanswered| match unanswered {
            UnansweredCall::NotWritten(failure) | UnansweredCall::Unknown(failure) => failure,
            UnansweredCall::Refused => unreachable!("without a body no gate is asked"),
        })?;
        let answer = ProviderAnswer::from(answer);
        match answer.is_success() && answer.document.is_some() || api.is_good_check(&answer) {
            true => Ok(format!("{} took the key", api.name())),
            false => Err(judge::failure(&answer, api.read(&answer).error.as_ref())),
        }
    }
}

/// Refuses the recipients that the provider will not send to, although it accepted the mail.
fn refuse_left_out(left_out: &[String], envelope: &MailEnvelope<'_>, recipients: &mut [RecipientReply]) {
    for (address, reply) in envelope.recipients.iter().zip(recipients) {
        let is_left_out = || left_out.iter().any(|one| EmailAddress::is_same(one, address));
        if reply.is_accepted() && is_left_out() {
            *reply = RecipientReply::Refused(judge::left_out());
        }
    }
}

/// The pause after "too many requests" without a duration.
fn default_pause(end: &DeliveryEnd) -> Option<Duration> {
    match end {
        DeliveryEnd::NotSent(failure) if failure.category == FailureCategory::RateLimited => {
            Some(PAUSE_DEFAULT)
        }
        DeliveryEnd::NotSent(_)
        | DeliveryEnd::Accepted { .. }
        | DeliveryEnd::Captured { .. }
        | DeliveryEnd::InDoubt(_)
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => None,
    }
}

/// The key that is the same for every call with this message and these recipients, and different for any
/// other. A provider that remembers it answers a repeat without sending again.
fn idempotency_key(uid: MessageUid, recipients: &[&str]) -> String {
    let hash = digest::digest(&digest::SHA256, recipients.join("\n").as_bytes());
    let short: String = hash.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{uid}-{short}")
}

fn too_large(message: String) -> SendFailure {
    SendFailure::new(
        "message_too_large",
        FailureCategory::MessageTooLarge,
        FailurePhase::Compose,
        FailureSeverity::Permanent,
        message,
    )
}

/// Refuses mail that no provider accepts.
fn check(envelope: &MailEnvelope<'_>, body: &[u8], api: &dyn ProviderApi) -> Result<(), SendFailure> {
    let refuse = |code: &'static str, category, message: String| {
        Err(SendFailure::new(code, category, FailurePhase::Compose, FailureSeverity::Permanent, message))
    };
    let mut addresses = envelope.recipients.iter().chain([&envelope.sender]);
    let needs_utf8 = envelope.smtputf8 && api.form() != ProviderMailForm::Fields;
    if needs_utf8 || addresses.any(|address| !address.is_ascii()) {
        let message =
            format!("{} is not known to take SMTPUTF8, which this mail's addresses need", api.name());
        return refuse("smtputf8_unsupported", FailureCategory::Smtputf8Unsupported, message);
    }
    if body.len() > MAIL_BYTES_MAX {
        return Err(too_large(format!(
            "the mail has {} bytes, at most {MAIL_BYTES_MAX} are sent",
            body.len()
        )));
    }
    if !envelope.sender.is_empty() && !is_address(envelope.sender) {
        return refuse("address_invalid", FailureCategory::SenderRejected, INVALID.to_owned());
    }
    Ok(())
}
