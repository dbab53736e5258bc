//! Closed lists of words, declared once: the fields and parameters that take or show one of them, and nothing
//! else.
//!
//! The code that reads bodies and queries knows the words already; without these lists the document would
//! call them free text, and a generated client would learn of a wrong word only from a refusal. Lists that
//! grow with every version (failure codes, kinds of events) are not here. A field is named as `Schema.field`,
//! a parameter as `operationId?parameter`.

use std::collections::BTreeSet;

use postway_domain::{
    AccountKind, EventKind, HookProvider, MessageState, ProviderEventState, RecipientStatus, UserRole,
    domain_report::{DomainReportKind, ReportAuthentication, TlsSessionResult},
    inbound::{InboundState, outcome_rank},
    key::KeyScope,
    route::RouteCondition,
    subscriber::event_names,
};
use serde_json::Value;
use utoipa::openapi::{
    OpenApi as Document, RefOr, Schema, Type,
    schema::{ArrayItems, Object, SchemaType},
};

use super::named;
use crate::{message::bulk::BulkActionView, outgoing::domain::check::STATES};

/// The words of one list, and the fields that use them.
struct WordList {
    words: Vec<&'static str>,
    used_by: &'static [&'static str],
}

fn list(words: &[&'static str], used_by: &'static [&'static str]) -> WordList {
    WordList { words: words.to_vec(), used_by }
}

/// Adds the words to the document. A name that is not in the document is skipped; a test checks that all are.
pub(super) fn close(document: &mut Document) {
    for WordList { words, used_by } in lists() {
        for name in used_by {
            if let Some(schema) = named::find(document, name) {
                restrict(schema, &words);
            }
        }
    }
}

fn lists() -> Vec<WordList> {
    let statuses: BTreeSet<_> = MessageState::ALL.iter().map(|state| state.status()).collect();
    let statuses: Vec<&'static str> = statuses.into_iter().map(|status| status.as_str()).collect();
    // A dry run stores nothing, so its result has no status.
    let received: Vec<&'static str> = statuses.iter().copied().chain(["valid"]).collect();
    let events: Vec<&'static str> = event_names().chain(["*"]).collect();
    vec![
        WordList {
            words: statuses,
            used_by: &[
                "listMessages?status",
                "MessageSummary.status",
                "SettledMessage.status",
                "Explanation.status",
                "SentOn.status",
                "BulkStatusCount.status",
            ],
        },
        WordList {
            words: EventKind::ALL
                .iter()
                .filter(|kind| outcome_rank(**kind).is_some())
                .map(|kind| kind.as_str())
                .collect(),
            used_by: &["listMessages?outcome"],
        },
        WordList { words: received, used_by: &["Receipt.status"] },
        WordList {
            words: RecipientStatus::ALL.iter().map(|status| status.as_str()).collect(),
            used_by: &["Recipient.status"],
        },
        WordList { words: BulkActionView::states().collect(), used_by: &["BulkAction.state"] },
        list(&["cancel", "retry", "reschedule", "resolve", "suppress"], &["BulkActionRequest.action"]),
        list(&["sent", "failed", "resend"], &["BulkActionRequest.outcome"]),
        list(&STATES, &["DnsFinding.state"]),
        list(&["to", "cc", "bcc"], &["Recipient.kind"]),
        WordList { words: events, used_by: &["WebhookRequest.events", "Webhook.events"] },
        WordList {
            words: KeyScope::ALL.iter().map(|scope| scope.as_str()).collect(),
            used_by: &["KeyRequest.scopes", "Key.scopes", "Session.scopes"],
        },
        WordList {
            words: UserRole::ALL.iter().map(|role| role.as_str()).collect(),
            used_by: &["UserRequest.role", "User.role", "Session.role"],
        },
        WordList {
            words: InboundState::ALL.iter().map(|state| state.as_str()).collect(),
            used_by: &["listInbound?status", "InboundSummary.status"],
        },
        list(&["no_match", "dead", "routed"], &["InboundReplayRequest.status"]),
        WordList {
            words: HookProvider::ALL.iter().map(|provider| provider.as_str()).collect(),
            used_by: &["ProviderHookRequest.provider", "ProviderHook.provider", "ReportedEvent.provider"],
        },
        WordList {
            words: ProviderEventState::ALL.iter().map(|state| state.as_str()).collect(),
            used_by: &["listAccountHookEvents?status", "ReportedEvent.status"],
        },
        list(
            &["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"],
            &["listInbound?kind", "InboundReplayRequest.kind", "InboundSummary.kind"],
        ),
        list(&DomainReportKind::ALL.map(DomainReportKind::as_str), &["DomainReport.kind"]),
        list(&ReportAuthentication::ALL.map(ReportAuthentication::as_str), &["DomainReport.authentication"]),
        list(&TlsSessionResult::ALL.map(TlsSessionResult::as_str)[1..], &["TlsFailure.type"]),
        list(
            &RouteCondition::ALL.map(RouteCondition::as_str),
            &["TriedRouteCondition.condition", "MessageRoute.because"],
        ),
        list(&["suspended", "circuit", "limit"], &["TriedAccount.held_by", "MessageRoute.waits_for"]),
        list(
            &["resend", "hold"],
            &[
                "sendMessage?X-Postway-On-Doubt",
                "sendBatch?X-Postway-On-Doubt",
                "sendRawMessage?X-Postway-On-Doubt",
                "sendRawMessage?on_doubt",
                "MessageRequest.on_doubt",
                "AccountRequest.on_doubt",
                "MailboxRequest.on_doubt",
                "TenantRequest.on_doubt",
                "MessageSummary.on_doubt",
                "SettledMessage.on_doubt",
                "Account.on_doubt",
                "Mailbox.on_doubt",
                "Tenant.on_doubt",
            ],
        ),
        list(&["0", "1", "2", "3", "immediate", "high", "normal", "low"], &["sendRawMessage?priority"]),
        list(&["sent", "failed", "resend"], &["ResolveRequest.outcome"]),
        list(&["base64", "http_url", "filesystem", "endpoint"], &["Attachment.fetch_mode"]),
        list(
            &["pending", "calling", "waiting", "acknowledged", "dead"],
            &["listDeliveries?status", "Delivery.status", "Notification.status"],
        ),
        list(&["dead", "all"], &["ResendDeliveriesRequest.which"]),
        list(&["webhook", "callback", "sync"], &["Webhook.kind"]),
        list(&["hour", "day"], &["getStatistics?by"]),
        list(&["json", "jsonl"], &["listAudit?format", "followAudit?format"]),
        list(&["csv", "jsonl"], &["importSuppressions?format"]),
        list(
            &["manual", "hard_bounce", "complaint", "unsubscribe"],
            &[
                "SuppressionRequest.reason",
                "SuppressionChange.reason",
                "Suppression.reason",
                "ScopedSuppressionRequest.reason",
                "ScopedSuppression.reason",
            ],
        ),
        list(&["rsa", "ed25519"], &["SigningKeyRequest.algorithm", "SigningKey.algorithm"]),
        list(&AccountKind::ALL.map(AccountKind::as_str), &["AccountRequest.kind", "Account.kind"]),
        list(&["starttls", "implicit", "none", "opportunistic"], &["AccountRequest.tls", "Account.tls"]),
        list(&["defer", "reject"], &["LimitsRequest.behavior", "Limits.behavior"]),
        list(&["closed", "open"], &["Circuit.state"]),
        list(&["connect", "tls", "auth", "send"], &["AccountTestStep.step"]),
        list(&["implicit", "starttls", "none"], &["MailboxRequest.tls", "Mailbox.tls"]),
        list(&["microsoft", "google"], &["OAuthRequest.preset", "OAuth.preset"]),
        list(
            &["client_credentials", "refresh_token", "service_account"],
            &["OAuthRequest.grant", "OAuth.grant"],
        ),
        list(&["password", "xoauth2"], &["MailboxRequest.auth", "Mailbox.auth"]),
        list(
            &["forward", "bounces", "pec", "events", "domain_reports"],
            &["MailboxRequest.roles", "MailboxRequest.role", "Mailbox.roles"],
        ),
        list(&["settings", "connect", "tls", "login", "folder", "mail"], &["MailboxTestStep.step"]),
        list(&["open", "closed", "off"], &["TenantRequest.virus_policy", "Tenant.virus_policy"]),
        list(&["event", "outbox", "batch"], &["TenantRequest.callback_form", "Tenant.callback_form"]),
        list(&["none", "bearer", "basic"], &["RemoteAuthRequest.type", "RemoteAuth.type"]),
        list(&["verified", "unverified", "absent"], &["PecReceipt.signature"]),
        list(&["hard", "soft"], &["Bounce.type"]),
        list(&["alive", "dead"], &["Node.status"]),
    ]
}

/// Restricts a text, or each text of a list, to these words. `null` stays allowed.
fn restrict(schema: &mut RefOr<Schema>, words: &[&str]) {
    match schema {
        RefOr::T(Schema::Object(object)) => restrict_text(object, words),
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                restrict(items, words);
            }
        }
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter_mut().for_each(|one| restrict(one, words)),
        _ => {}
    }
}

fn restrict_text(object: &mut Object, words: &[&str]) {
    let (is_text, is_nullable) = match &object.schema_type {
        SchemaType::Type(kind) => (*kind == Type::String, false),
        SchemaType::Array(kinds) => (kinds.contains(&Type::String), kinds.contains(&Type::Null)),
        SchemaType::AnyValue => (false, false),
    };
    if is_text {
        let words = words.iter().map(|word| Value::from(*word));
        object.enum_values = Some(words.chain(is_nullable.then_some(Value::Null)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_used_where_it_says() {
        let mut document = super::super::document();
        for WordList { words, used_by } in lists() {
            assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{words:?}");
            for name in used_by {
                let schema = named::find(&mut document, name).unwrap_or_else(|| panic!("there is no {name}"));
                let text = serde_json::to_string(schema).unwrap();
                assert!(text.contains(&format!("\"enum\":[\"{}\"", words[0])), "{name}: {text}");
            }
        }
    }
}
