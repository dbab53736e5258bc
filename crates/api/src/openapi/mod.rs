//! Every route, and the OpenAPI document generated from them. A route cannot be served without being
//! documented.

mod binary;
mod bounds;
pub(crate) mod docs_page;
mod example;
mod named;
mod request;
mod word_list;

use std::{collections::HashMap, sync::LazyLock};

use axum::{
    http::{Method, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use utoipa::{
    OpenApi,
    openapi::{
        Components, ContentBuilder, KnownFormat, OpenApi as Document, Ref, RefOr, ResponseBuilder, Schema,
        SchemaFormat,
        path::{Operation, Parameter, ParameterIn},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::{audit, audit_chain, cleanup, erase, node, outbox, outbox_token, tenant},
    auth::session,
    http::{error::ErrorAnswer, pagination},
    inbound::{contact, mail, mailbox, rule},
    message::{self, archive, feed, operate::dead_letter},
    observe::{account_history, health, metrics, overview, queue_stats, stream_history},
    outgoing::{account, batch, dkim, domain, recipient, route, stream, suppression, template},
    people,
    state::SharedState,
    web::{hook, linked_file, unsubscribe},
    webhook,
};

/// The form of a cursor.
const CURSOR: &str = "^[A-Za-z0-9_-]+$";

/// The document's preface.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Postway",
        description = "A durable email gateway: hand over a mail, and follow it to its outcome.\n\nSend your key \
            as `Authorization: Bearer KEY` or `X-API-Key: KEY`. An admin key names the tenant with `X-Tenant` \
            (`default` when absent); a tenant's key works for its own tenant, within its scopes `send`, `read` and \
            `manage`. Every answer carries `X-Request-Id`, yours if you send one. Times are RFC 3339 in UTC; input also \
            takes Unix seconds. Lists are `{\"data\":[…],\"next_cursor\":\"…\"}`: pass `next_cursor` as `cursor` to read the next page; \
            a cursor that no answer returned is refused.",
        contact(name = "Postway")
    ),
    servers(
        (url = "http://127.0.0.1:8520", description = "A server on this machine, started with its defaults"),
        (url = "/", description = "The server that this document came from"),
    ),
    tags(
        (name = "messages", description = "Sending mail, and following it."),
        (name = "dead letters", description = "Messages whose retries are exhausted."),
        (name = "templates", description = "Mail templates, stored in versions."),
        (name = "recipients", description = "Your optional directory of the people you write to."),
        (name = "signing keys", description = "DKIM: keys that sign the mail of a domain, and what DNS says about your domains."),
        (name = "accounts", description = "The relays and providers that send your mail."),
        (name = "routes", description = "Rules that choose the account of mail that names none."),
        (name = "batches", description = "Mail that is suspended and activated together."),
        (name = "streams", description = "Named kinds of mail, which readers can unsubscribe from one by one."),
        (name = "suppressions", description = "Addresses that get no mail."),
        (name = "webhooks", description = "URLs that are called for events, and the feed of events to read."),
        (name = "inbound", description = "Watched mailboxes, the rules for their mail, and that mail."),
        (name = "outbox", description = "Mail from your own database, and the tokens of its accounts."),
        (name = "tenants", description = "Tenants and their keys. For the admin key."),
        (name = "users", description = "The people who operate the gateway: roles, invitations, sessions."),
        (name = "operations", description = "For operators and monitoring."),
    ),
    components(schemas(ErrorAnswer))
)]
struct DocumentPreface;

/// Every route with its documentation. Four have none: the style sheet, the script, and the two paths that are calls for
/// POST but may be a client's message id for GET.
pub(crate) fn routes() -> OpenApiRouter<SharedState> {
    OpenApiRouter::with_openapi(DocumentPreface::openapi())
        .routes(routes!(message::submit::accept::accept, message::read::list::list))
        .routes(routes!(message::submit::batch::accept))
        .routes(routes!(message::submit::accept_raw::accept))
        .routes(routes!(message::read::show::show))
        .routes(routes!(message::read::events::events))
        .routes(routes!(message::content::raw::raw))
        .routes(routes!(message::content::payload::payload))
        .routes(routes!(message::content::parts::content))
        .routes(routes!(message::content::parts::preview))
        .routes(routes!(message::content::parts::attachment))
        .routes(routes!(message::read::explain::explain))
        .routes(routes!(message::content::pec::list))
        .routes(routes!(message::content::pec_export::export))
        .routes(routes!(message::operate::actions::cancel))
        .routes(routes!(message::operate::actions::retry))
        .routes(routes!(message::operate::actions::reschedule))
        .routes(routes!(message::operate::actions::resolve))
        .routes(routes!(message::bulk::create, message::bulk::list))
        .routes(routes!(message::bulk::show))
        .routes(routes!(message::bulk::stop))
        .routes(routes!(overview::overview))
        .routes(routes!(session::sign_in, session::show, session::sign_out))
        .routes(routes!(session::invitation::accept))
        .routes(routes!(session::passkey::challenge))
        .routes(routes!(session::passkey::sign_in))
        .routes(routes!(people::passkey_list::list, people::passkey_list::add))
        .routes(routes!(people::passkey_list::challenge))
        .routes(routes!(people::passkey_list::delete))
        .routes(routes!(session::away::ways))
        .routes(routes!(session::away::begin))
        .routes(routes!(session::away::finish))
        .routes(routes!(session::away::logout, session::provider_sign_out::sign_out_person))
        .routes(routes!(people::write::create, people::list))
        .routes(routes!(people::show, people::write::patch, people::delete))
        .routes(routes!(people::invite::invite))
        .routes(routes!(people::session_list::list, people::session_list::end_of_user))
        .routes(routes!(people::session_list::list_own, people::session_list::end_own))
        .routes(routes!(people::session_list::end))
        .routes(routes!(dead_letter::list))
        .routes(routes!(dead_letter::replay))
        .routes(routes!(template::write::create, template::list))
        .routes(routes!(template::preview::source))
        .routes(routes!(template::show, template::write::put, template::delete))
        .routes(routes!(template::versions))
        .routes(routes!(template::preview::stored))
        .routes(routes!(template::test_send::send))
        .routes(routes!(recipient::write::create, recipient::list::list))
        .routes(routes!(recipient::show, recipient::write::patch, recipient::delete))
        .routes(routes!(dkim::create::create, dkim::list))
        .routes(routes!(dkim::show, dkim::delete))
        .routes(routes!(dkim::pause::activate))
        .routes(routes!(dkim::pause::suspend))
        .routes(routes!(archive::list))
        .routes(routes!(archive::show))
        .routes(routes!(archive::raw))
        .routes(routes!(archive::delete))
        .routes(routes!(domain::list))
        .routes(routes!(domain::check))
        .routes(routes!(domain::delete))
        .routes(routes!(domain::report::list))
        .routes(routes!(domain::report::summary))
        .routes(routes!(account::create, account::list))
        .routes(routes!(account::show, account::change::patch, account::change::put, account::delete))
        .routes(routes!(account::pause::suspend))
        .routes(routes!(account::pause::activate))
        .routes(routes!(account::probe::test))
        .routes(routes!(account::secrets::rotate))
        .routes(routes!(account::hook::put, account::hook::show, account::hook::delete))
        .routes(routes!(account::hook::rotate))
        .routes(routes!(account::hook::events::list))
        .routes(routes!(hook::report))
        .routes(routes!(route::write::create, route::list))
        .routes(routes!(route::order::order))
        .routes(routes!(route::trial::try_routes))
        .routes(routes!(route::show, route::write::patch, route::delete))
        .routes(routes!(batch::list))
        .routes(routes!(batch::show))
        .routes(routes!(batch::suspend))
        .routes(routes!(batch::activate))
        .routes(routes!(suppression::scoped::create, suppression::scoped::list))
        .routes(routes!(suppression::scoped::delete))
        .routes(routes!(stream::write::create, stream::list))
        .routes(routes!(stream::show, stream::write::patch, stream::delete))
        .routes(routes!(unsubscribe::show, unsubscribe::decide))
        .routes(routes!(suppression::create, suppression::list))
        .routes(routes!(suppression::import::import))
        .routes(routes!(suppression::export::export))
        .routes(routes!(suppression::show, suppression::patch, suppression::delete))
        .routes(routes!(webhook::create::create, webhook::list))
        .routes(routes!(webhook::show, webhook::change::patch, webhook::delete))
        .routes(routes!(webhook::secret::rotate))
        .routes(routes!(webhook::probe::test))
        .routes(routes!(webhook::delivery::list))
        .routes(routes!(webhook::delivery::resend))
        .routes(routes!(webhook::resend::resend))
        .routes(routes!(feed::events))
        .routes(routes!(mailbox::create::create, mailbox::list))
        .routes(routes!(mailbox::show, mailbox::change::patch, mailbox::delete))
        .routes(routes!(mailbox::probe::test))
        .routes(routes!(mailbox::pause::suspend))
        .routes(routes!(mailbox::pause::activate))
        .routes(routes!(rule::create::create, rule::list))
        .routes(routes!(rule::trial::dry_run))
        .routes(routes!(rule::show, rule::change::patch, rule::delete))
        .routes(routes!(contact::write::create, contact::list))
        .routes(routes!(contact::show, contact::write::patch, contact::delete))
        .routes(routes!(mail::list))
        .routes(routes!(mail::show))
        .routes(routes!(mail::raw::raw))
        .routes(routes!(mail::content::content))
        .routes(routes!(mail::content::preview))
        .routes(routes!(mail::content::attachment))
        .routes(routes!(mail::operate::replay))
        .routes(routes!(mail::replay_all::replay))
        .routes(routes!(mail::operate::resolve))
        .routes(routes!(tenant::own))
        .routes(routes!(tenant::create, tenant::list))
        .routes(routes!(tenant::show, tenant::change::patch, tenant::delete))
        .routes(routes!(tenant::pause::suspend))
        .routes(routes!(tenant::pause::activate))
        .routes(routes!(tenant::key::create, tenant::key::list))
        .routes(routes!(tenant::key::revoke))
        .routes(routes!(outbox::list))
        .routes(routes!(outbox_token::verify))
        .routes(routes!(queue_stats::stats))
        .routes(routes!(account_history::statistics))
        .routes(routes!(stream_history::statistics))
        .routes(routes!(cleanup::cleanup))
        .routes(routes!(erase::erase))
        .routes(routes!(node::list))
        .routes(routes!(audit::list))
        .routes(routes!(audit_chain::lines))
        .routes(routes!(linked_file::get))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi_json))
        .routes(routes!(docs_page::docs))
        .route("/docs/style.css", get(docs_page::style))
        .route("/docs/script.js", get(docs_page::script))
        .route("/v1/messages/batch", get(message::read::show::show_named_batch))
        .route("/v1/messages/raw", get(message::read::show::show_named_raw))
}

/// The OpenAPI document of this version.
pub fn document() -> Document {
    let mut document = routes().into_openapi();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let components = document.components.get_or_insert_with(Components::new);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    let header = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
    components.add_security_scheme("key", SecurityScheme::ApiKey(header));
    let none: [&str; 0] = [];
    document.security =
        Some(vec![SecurityRequirement::new("bearer", none), SecurityRequirement::new("key", none)]);
    for operation in named::operations(&mut document) {
        promise_errors(operation);
        bound_paging(operation);
    }
    request::finish(&mut document);
    word_list::close(&mut document);
    bounds::set(&mut document);
    binary::describe(&mut document);
    example::show(&mut document);
    document
}

/// A call without query parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParameterlessCall {
    /// Whether it needs a key.
    pub(crate) needs_key: bool,
}

/// The call, if it has no query parameters. Calls that have some read them themselves; and paths outside
/// `/v1` are for probes, browsers and readers of mail, which may add what they like.
pub(crate) fn bare(method: &Method, route: &str) -> Option<ParameterlessCall> {
    static CALLS: LazyLock<HashMap<(Method, String), ParameterlessCall>> =
        LazyLock::new(|| bare_calls(&document()));
    // `HEAD` is answered by the handler of `GET`.
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    CALLS.get(&(method, route.to_owned())).copied()
}

fn bare_calls(document: &Document) -> HashMap<(Method, String), ParameterlessCall> {
    let is_query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => matches!(parameter.parameter_in, ParameterIn::Query),
        RefOr::Ref(_) => true,
    };
    let of_v1 = document.paths.paths.iter().filter(|(path, _)| path.starts_with("/v1/"));
    let operations = of_v1.flat_map(|(path, item)| {
        [
            (Method::GET, &item.get),
            (Method::PUT, &item.put),
            (Method::POST, &item.post),
            (Method::DELETE, &item.delete),
            (Method::PATCH, &item.patch),
        ]
        .into_iter()
        .filter_map(move |(method, operation)| Some((method, path, operation.as_ref()?)))
    });
    operations
        .filter(|(_, _, operation)| !operation.parameters.iter().flatten().any(is_query))
        .map(|(method, path, operation)| {
            ((method, path.clone()), ParameterlessCall { needs_key: operation.security.is_none() })
        })
        .collect()
}

/// Bounds that all lists share: the largest page, the form of a cursor, and the form of a time.
fn bound_paging(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { continue };
        match parameter.name.as_str() {
            "limit" => {
                (schema.minimum, schema.maximum) = (Some(1.into()), Some(pagination::LIMIT_MAX.into()))
            }
            "cursor" | "after" => schema.pattern = Some(CURSOR.to_owned()),
            "since" | "until" | "send_at" | "expires_at" => {
                schema.format = Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));
            }
            _ => {}
        }
    }
}

/// Adds the error answer, which has one shape whatever the call and the status.
fn promise_errors(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Error"))).build();
    let error = ResponseBuilder::new()
        .description("An error: 4xx names what is wrong with the request, 5xx may be tried again")
        .content("application/json", content)
        .build();
    operation.responses.responses.insert("default".to_owned(), error.into());
}

/// Get the OpenAPI document
///
/// Generated from the code. No key is needed.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getOpenApi",
    tag = "operations",
    security(()),
    responses((status = 200, description = "This API as OpenAPI 3.1", body = Object))
)]
async fn openapi_json() -> Response {
    static JSON: LazyLock<Bytes> = LazyLock::new(|| document().to_json().unwrap_or_default().into());
    ([(header::CONTENT_TYPE, "application/json")], JSON.clone()).into_response()
}
