//! `POST /v1/rules/dry-run`: what a rule would do with a mail, without doing it.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    Json,
    extract::{Request, State},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use postway_domain::{MessageUid, id::RuleId, rule::RuleContent};
use postway_intake::run_heavy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{edit, faults, find, schema::RuleRequest};
use crate::{
    auth::Reader,
    http::{
        body,
        body_budget::{RequestShare, with_reading_slot},
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
    },
    inbound::mail,
    state::SharedState,
};

/// The largest mail that is tested, and the body that carries it in base64.
const MAIL_BYTES_MAX: usize = 25 * 1024 * 1024;
const BODY_BYTES_MAX: usize = MAIL_BYTES_MAX / 3 * 4 + body::SMALL_BYTES_MAX;

/// What a rule would do with a mail.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RuleTrial {
    /// Whether all conditions match and the rule could be applied.
    pub matched: bool,
    /// Each condition, in order.
    pub conditions: Vec<TriedCondition>,
    /// The captures of the patterns' named groups.
    #[schema(example = json!({"order": "17"}))]
    pub captures: BTreeMap<String, String>,
    /// What would be done, in order, as rules describe actions.
    #[schema(value_type = Vec<Object>, example = json!([{"do": "forward", "to": ["orders@example.com"], "as": "compose"}]))]
    pub actions: Vec<Value>,
    /// Why nothing would be done although all conditions match: no contact with that name, or a loop.
    pub reason: Option<String>,
}

/// The result of one condition.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TriedCondition {
    /// Whether it matches.
    pub holds: bool,
    /// The explanation.
    pub why: String,
}

/// A rule, and a mail to test it with. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrialRequest {
    /// A rule that need not be stored; its `match` and `actions` are enough. This or `id`.
    rule: Option<RuleRequest>,
    /// A stored rule.
    #[schema(example = "orders")]
    id: Option<String>,
    /// An inbound mail, by its id. This or `raw`.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    inbound: Option<String>,
    /// A mail of at most 25 MiB, in base64. Everything else has at most 1 MiB and 20,000 values.
    raw: Option<String>,
}

/// Test a rule
///
/// Returns whether its conditions match a mail, what its patterns capture, and what would be done. Nothing is
/// done.
#[utoipa::path(
    post,
    path = "/v1/rules/dry-run",
    operation_id = "tryRule",
    tag = "inbound",
    request_body = TrialRequest,
    responses((status = 200, description = "What would be done", body = RuleTrial))
)]
pub(crate) async fn dry_run(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<RuleTrial>, ApiError> {
    let tenant = &caller.tenant;
    let (parts, body) = request.into_parts();
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, BODY_BYTES_MAX).await?;
    let (fields, raw) = body::json_beside(&bytes, "raw", body::SMALL_BYTES_MAX)?;
    // The decoded mail takes memory beside its base64.
    let held = app.body_budget.reserve_answer(tenant, raw.map_or(0, |raw| raw.get().len() / 4 * 3))?;
    let (rule, mail) = run_heavy(bytes.len(), || read(fields, raw)).map_err(ApiError::invalid)?;
    drop(bytes);
    if let Some(share) = parts.extensions.get::<RequestShare>() {
        share.release();
    }
    let content = match rule {
        RuleToTry::Given(content) => {
            let mut wrong = faults(&app, tenant, &content).await?;
            wrong.iter_mut().for_each(|one| one.field.insert_str(0, "rule."));
            if !wrong.is_empty() {
                return Err(ApiError::invalid(wrong));
            }
            content
        }
        RuleToTry::Stored(id) => find(&app, tenant, &id).await?.content,
    };
    let raw = match mail {
        MailToTry::Given(raw) => held.attach_to(raw),
        MailToTry::Stored(uid) => mail::bytes_of(&app, tenant, uid).await?,
    };
    let raw = with_reading_slot(raw, app.body_budget.reserve_reading(tenant).await?);
    Ok(Json(app.inbound.try_rule(tenant, &content, raw).await?))
}

enum RuleToTry {
    Given(RuleContent),
    Stored(RuleId),
}

enum MailToTry {
    Given(Bytes),
    Stored(MessageUid),
}

fn read(body: Map<String, Value>, raw: Option<&RawValue>) -> Result<(RuleToTry, MailToTry), Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let given: Option<Map<String, Value>> = fields.read("rule", "must be an object");
    let id: Option<RuleId> = fields.parsed("id");
    let rule = match (given, id) {
        (Some(given), None) => match edit::read(given, true) {
            Ok(given) => Some(RuleToTry::Given(given.content())),
            Err(within) => {
                within.into_iter().for_each(|one| fields.refuse(&format!("rule.{}", one.field), one.message));
                None
            }
        },
        (None, Some(id)) => Some(RuleToTry::Stored(id)),
        (Some(_), Some(_)) => {
            fields.refuse("id", "stands in the place of `rule`: give one of them");
            None
        }
        (None, None) => {
            fields.refuse("rule", "is needed: a rule, or the `id` of one");
            None
        }
    };
    let inbound: Option<MessageUid> = fields.parsed("inbound");
    let mail = match (inbound, raw) {
        (Some(uid), None) => Some(MailToTry::Stored(uid)),
        (None, Some(raw)) => match decoded(raw) {
            Some(raw) => Some(MailToTry::Given(raw.into())),
            None => {
                fields.refuse("raw", "must be a mail in base64");
                None
            }
        },
        (Some(_), Some(_)) => {
            fields.refuse("raw", "stands in the place of `inbound`: give one of them");
            None
        }
        (None, None) => {
            fields.refuse("inbound", "is needed: the id of a mail that came in, or a mail as `raw`");
            None
        }
    };
    fields.finish("is not a field of this call");
    wrong.dedup_by(|later, first| later.field == first.field);
    match (rule, mail) {
        (Some(rule), Some(mail)) if wrong.is_empty() => Ok((rule, mail)),
        _ => Err(wrong),
    }
}

/// The mail in a base64 text, decoded in place unless the text contains escapes.
fn decoded(raw: &RawValue) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Base64Text<'a>(#[serde(borrow)] Cow<'a, str>);

    let Base64Text(text) = serde_json::from_str(raw.get()).ok()?;
    BASE64_STANDARD.decode(text.trim()).ok()
}
