//! `POST /v1/routes/try`: which account a message would be sent by. Nothing is stored.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{
    MailStream, MessagePriority, NamedAddress,
    address::split_list,
    id::{BatchCode, StreamId},
};
use postway_intake::{RouteProbe, RouteTrial};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::edit;
use crate::{
    auth::Reader,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
        schema_form::{Recipients, Urgency},
    },
    state::SharedState,
};

/// The most recipients that are compared.
const RECIPIENTS_MAX: usize = 1_000;

/// What routes compare of a message. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteTrialRequest {
    /// The author.
    #[schema(example = "Shop <shop@example.com>")]
    from: Option<String>,
    /// All recipients.
    #[schema(inline)]
    to: Option<Recipients>,
    /// The tags.
    tags: Option<Vec<String>>,
    /// The batch.
    batch: Option<String>,
    /// The stream, if there is no batch.
    stream: Option<String>,
    /// The priority: 0 to 3, or its name; 2 when absent.
    #[schema(inline)]
    priority: Option<Urgency>,
}

/// Which account a message would be sent by.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteTrial)]
pub(crate) struct RouteTrialView {
    /// The route that decides; null if none matches, and then the default account sends.
    route: Option<String>,
    /// The accounts among which it chooses. One that cannot send now is left out as long as another can.
    accounts: Vec<TriedTargetView>,
    /// Every active route up to the one that decides, in order.
    steps: Vec<TriedRouteView>,
}

/// An account that may be chosen.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TriedAccount)]
pub(crate) struct TriedTargetView {
    /// The account.
    account: String,
    /// Its weight.
    weight: u32,
    /// Why it cannot send now: `suspended`, `circuit` or `limit`; null if it can.
    #[schema(example = json!(null))]
    held_by: Option<&'static str>,
}

/// One route, compared with the message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TriedRoute)]
pub(crate) struct TriedRouteView {
    /// The route.
    route: String,
    /// Whether all its conditions hold.
    matched: bool,
    /// Its conditions.
    conditions: Vec<TriedRouteConditionView>,
    /// Its accounts that do not exist any more.
    missing: Vec<String>,
    /// Whether it matches and is passed over because all its accounts are gone.
    passed_over: bool,
}

/// One condition of a route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TriedRouteCondition)]
pub(crate) struct TriedRouteConditionView {
    /// `sender_domain`, `tag`, `batch`, `stream`, `priority` or `recipient_domain`.
    #[schema(example = "sender_domain")]
    condition: &'static str,
    /// Whether it holds.
    holds: bool,
}

/// Try the routes
///
/// Returns which route a message without `account` would match, and which accounts it would choose from.
/// Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/routes/try",
    operation_id = "tryRoutes",
    tag = "routes",
    request_body = RouteTrialRequest,
    responses((status = 200, description = "What the routes say", body = RouteTrialView))
)]
pub(crate) async fn try_routes(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<RouteTrialView>, ApiError> {
    let probe = read(body::json_object(request).await?).map_err(ApiError::invalid)?;
    let trial = app.door.try_routes(&caller.tenant, &probe).await?;
    Ok(Json(trial.into()))
}

fn read(body: Map<String, Value>) -> Result<RouteProbe, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let from: Option<NamedAddress> = fields.parsed("from");
    let to = recipients(&mut fields);
    let tags = edit::list(&mut fields, "tags", |value| {
        value.as_str().map(str::to_owned).ok_or_else(|| "must be a text".to_owned())
    });
    let batch: Option<BatchCode> = fields.parsed("batch");
    let stream: Option<StreamId> = fields.parsed("stream");
    let priority =
        fields.take("priority").map_or(Ok(MessagePriority::default().code()), |given| edit::priority(&given));
    let priority = priority.unwrap_or_else(|message| {
        fields.refuse("priority", message);
        0
    });
    fields.finish("is not a field of this call");
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(RouteProbe {
        from,
        to,
        tags,
        batch: batch.or_else(|| stream.as_ref().map(MailStream::batch_of)),
        priority: MessagePriority::from_code(priority).unwrap_or_default(),
    })
}

/// The recipients: a list, or one text that may name several.
fn recipients(fields: &mut JsonFieldReader<'_>) -> Vec<NamedAddress> {
    let given: Vec<String> = match fields.take("to") {
        None => return Vec::new(),
        Some(Value::String(line)) => split_list(&line).into_iter().map(str::to_owned).collect(),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => {
            fields.refuse("to", "must be an address or a list of them");
            return Vec::new();
        }
    };
    if given.len() > RECIPIENTS_MAX {
        fields.refuse("to", format!("must be at most {RECIPIENTS_MAX} addresses"));
        return Vec::new();
    }
    let mut recipients = Vec::with_capacity(given.len());
    for (place, text) in given.iter().enumerate() {
        match text.parse::<NamedAddress>() {
            Ok(recipient) => recipients.push(recipient),
            Err(error) => fields.refuse(&format!("to[{place}]"), error.to_string()),
        }
    }
    recipients
}

impl From<RouteTrial> for RouteTrialView {
    fn from(trial: RouteTrial) -> Self {
        let target = |one: postway_intake::TriedTarget| TriedTargetView {
            account: one.account,
            weight: one.weight,
            held_by: one.held_by,
        };
        let step = |one: postway_intake::TriedRoute| TriedRouteView {
            route: one.id,
            matched: one.conditions.iter().all(|(_, holds)| *holds),
            conditions: one
                .conditions
                .into_iter()
                .map(|(condition, holds)| TriedRouteConditionView { condition: condition.as_str(), holds })
                .collect(),
            missing: one.missing,
            passed_over: one.is_passed_over,
        };
        Self {
            route: trial.route,
            accounts: trial.accounts.into_iter().map(target).collect(),
            steps: trial.steps.into_iter().map(step).collect(),
        }
    }
}
