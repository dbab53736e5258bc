//! Routes as JSON, and their request bodies as the OpenAPI document describes them.

use std::collections::BTreeSet;

use postway_domain::{AccountId, MailRoute, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::schema_form::Urgency;

/// A rule that chooses the account of a message that names none.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Route)]
pub(crate) struct RouteView {
    /// The id.
    #[schema(example = "newsletters")]
    id: String,
    /// The position; the first route that matches decides.
    position: i64,
    /// Whether it is active.
    active: bool,
    /// The purpose.
    description: Option<String>,
    /// Its conditions.
    #[serde(rename = "match")]
    conditions: RouteMatchView,
    /// The accounts it chooses from.
    accounts: Vec<RouteAccountView>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// The conditions of a route. An empty list matches all mail; any other, if one of its entries does.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteMatch)]
pub(crate) struct RouteMatchView {
    /// The domain of `from`; `*.example.com` stands for the subdomains of a domain.
    #[schema(example = json!(["news.example.com"]))]
    sender_domains: Vec<String>,
    /// A tag.
    tags: Vec<String>,
    /// The batch.
    batches: Vec<String>,
    /// The stream.
    streams: Vec<String>,
    /// The priority, 0 (immediate) to 3 (low).
    priorities: Vec<i64>,
    /// The domains of the recipients: the route matches if each recipient's does.
    recipient_domains: Vec<String>,
}

/// An account of a route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RouteAccount)]
pub(crate) struct RouteAccountView {
    /// The account.
    #[schema(example = "bulk-1")]
    account: String,
    /// How much of the mail it gets, compared with the other accounts of the route.
    #[schema(example = 1)]
    weight: u32,
    /// Whether there is no such account: the others get its mail, or else the next route that matches.
    missing: bool,
}

/// A tenant's routes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteList {
    /// In the order in which they apply.
    pub(super) data: Vec<RouteView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl RouteView {
    /// The view of a route, where these accounts exist.
    pub(super) fn new(route: MailRoute, existing: &BTreeSet<AccountId>) -> Self {
        let conditions = route.content.conditions;
        let texts = |list: Vec<postway_domain::address_pattern::DomainPattern>| {
            list.iter().map(ToString::to_string).collect()
        };
        Self {
            id: route.id.to_string(),
            position: route.position,
            active: route.active,
            description: route.content.description,
            conditions: RouteMatchView {
                sender_domains: texts(conditions.sender_domains),
                tags: conditions.tags,
                batches: conditions.batches,
                streams: conditions.streams,
                priorities: conditions.priorities,
                recipient_domains: texts(conditions.recipient_domains),
            },
            accounts: route
                .content
                .accounts
                .into_iter()
                .map(|target| RouteAccountView {
                    missing: !existing.contains(&target.account),
                    account: target.account.to_string(),
                    weight: target.weight,
                })
                .collect(),
            version: route.version,
            created_at: route.created_at,
            updated_at: route.updated_at,
        }
    }

    /// Where it stands in the list.
    pub(super) fn place(&self) -> (i64, String) {
        (self.position, self.id.clone())
    }
}

/// A route to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteRequest {
    /// The id, unique in your tenant; made up when absent, and fixed then.
    #[schema(example = "newsletters")]
    id: Option<String>,
    /// The position; after all other routes when absent. The first route that matches decides.
    #[schema(nullable = false)]
    position: Option<i64>,
    /// Whether it is active.
    #[schema(nullable = false, default = true)]
    active: Option<bool>,
    /// The purpose, at most 1,000 characters; `null` removes it.
    description: Option<String>,
    /// Its conditions, which must all hold; all mail matches a route without any.
    #[serde(rename = "match")]
    conditions: Option<RouteMatchRequest>,
    /// The accounts it chooses from, 1 to 20; required on creation.
    accounts: Option<Vec<RouteAccountRequest>>,
    /// With `PATCH`: change only if the route still has this version.
    #[schema(nullable = false)]
    version: Option<i64>,
}

/// The conditions of a route. An empty or absent list matches all mail; any other, if one of its entries
/// does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteMatchRequest {
    /// The domain of `from`: `example.com`, or `*.example.com` for its subdomains.
    #[schema(example = json!(["news.example.com"]))]
    sender_domains: Option<Vec<String>>,
    /// A tag.
    tags: Option<Vec<String>>,
    /// The batch.
    batches: Option<Vec<String>>,
    /// The stream, also as the beginning of a batch.
    streams: Option<Vec<String>>,
    /// The priority: 0 to 3, or its name.
    #[schema(inline)]
    priorities: Option<Vec<Urgency>>,
    /// The domains of the recipients, as for `sender_domains`: the route matches if each recipient's does.
    recipient_domains: Option<Vec<String>>,
}

/// An account of a route.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteAccountRequest {
    /// The account.
    #[schema(example = "bulk-1")]
    account: String,
    /// How much of the mail it gets, compared with the other accounts; 0 leaves it out.
    #[schema(nullable = false, default = 1)]
    weight: Option<u32>,
    /// Shown by `GET`, and ignored here.
    #[schema(nullable = false)]
    missing: Option<bool>,
}

/// The routes in their new order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RouteOrderRequest {
    /// The ids of all routes of your tenant, each once.
    #[schema(example = json!(["receipts", "newsletters"]))]
    ids: Vec<String>,
}
