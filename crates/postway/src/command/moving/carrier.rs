//! Imports rows into the server, or tries them there: both take the same path, so that a rehearsal proves
//! something.
//!
//! Rows come in an order that works: tenants before accounts, accounts before mail. In a rehearsal earlier
//! rows do not exist for later ones, so it remembers what would have been created.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postway_api::{CompatApi, FieldError, ForeignRowKind, foreign_field_name, translate_row};
use postway_moving::{CarriedKind, CarriedRow, ReferenceSystem, RowFault, RowFormat, RowLocation};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value};

use super::mail::MovingPage;
use super::report::MovingReport;
use crate::cli::client::{ApiClient, RequestBody, refusal};
use crate::cli::failure::CommandFailure;

/// How often a request to a busy server is repeated.
const BUSY_TRIES_MAX: u32 = 60;
/// How long to wait before each repetition.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// Whether rows are tried or imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovingMode {
    /// Nothing is written.
    Rehearse,
    /// Rows that pass are imported.
    Import,
}

/// The client that tries or imports rows.
pub struct MovingClient {
    pub(super) client: ApiClient,
    pub(super) system: ReferenceSystem,
    pub(super) mode: MovingMode,
    home: String,
    renamed: Vec<(String, String)>,
    /// The tenants that were looked up, as the server shows them, or null if they do not exist.
    pub(super) tenants: BTreeMap<String, Value>,
    /// The tenants that a rehearsal would have created.
    pub(super) planned_tenants: BTreeSet<String>,
    /// The old system's accounts, by tenant, with whether the server has them by now.
    pub(super) accounts: BTreeMap<String, BTreeMap<String, bool>>,
    /// Tenants whose mail leaves by a real account, as far as that was looked up.
    pub(super) real: BTreeMap<String, bool>,
    pub(super) page: MovingPage,
}

/// An answer of the server.
pub(super) struct MovingAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl MovingClient {
    /// Asks for the tenant that rows without one are for.
    pub async fn new(
        client: ApiClient,
        system: ReferenceSystem,
        mode: MovingMode,
        home: String,
        renamed: Vec<(String, String)>,
    ) -> Result<Self, CommandFailure> {
        let mut carrier = Self {
            client,
            system,
            mode,
            home: home.clone(),
            renamed,
            tenants: BTreeMap::new(),
            planned_tenants: BTreeSet::new(),
            accounts: BTreeMap::new(),
            real: BTreeMap::new(),
            page: MovingPage::default(),
        };
        if carrier.tenant(&home).await?.is_null() {
            return Err(CommandFailure::NotFound(format!("there is no tenant `{home}`: create it first")));
        }
        carrier.expect_dry_runs().await?;
        Ok(carrier)
    }

    /// A server that does not know dry runs would make what is only to be tried.
    async fn expect_dry_runs(&mut self) -> Result<(), CommandFailure> {
        let document = self.find(None, &["openapi.json"]).await?.unwrap_or_default();
        let knows = |path: &str| {
            let parameters = document["paths"][path]["post"]["parameters"].as_array();
            parameters.is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "dry_run"))
        };
        match ["/v1/tenants", "/v1/accounts", "/v1/mailboxes", "/v1/recipients"].into_iter().all(knows) {
            true => Ok(()),
            false => Err(anyhow::anyhow!(
                "the server at {} is of an earlier version, which has no dry runs: bring it up to date first",
                self.client.base()
            )
            .into()),
        }
    }

    /// Tries or imports a row. Mail is collected into batches first.
    pub async fn carry(
        &mut self,
        mut row: CarriedRow,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let tenant = self.tenant_of(row.tenant.as_deref());
        if row.form == RowFormat::Theirs {
            let kind = old_kind(row.kind);
            row.body = match translate_row(self.door(), kind, row.body) {
                Ok(ours) => ours,
                Err(wrong) => {
                    report.wrong.extend(faults(&row.place, &wrong));
                    return Ok(());
                }
            };
        }
        if super::is_single(row.kind) {
            // Mail that was read before goes first.
            self.flush(report).await?;
        }
        match row.kind {
            CarriedKind::Tenant => self.carry_tenant(&row, report).await,
            CarriedKind::TenantSuspension => self.hold_tenant(&row, report).await,
            CarriedKind::BatchSuspension => self.hold_batch(&row, &tenant, report).await,
            CarriedKind::Account => self.carry_account(&row, &tenant, report).await,
            CarriedKind::Recipient => self.carry_recipient(&row, &tenant, report).await,
            CarriedKind::Mailbox => self.carry_mailbox(&row, &tenant, report).await,
            CarriedKind::Suppression | CarriedKind::Message => self.collect(row, tenant, report).await,
            CarriedKind::Token => {
                report.carried(CarriedKind::Token, 1);
                Ok(())
            }
        }
    }

    /// Ends a kind of rows: collected mail is imported, and tenants that moved with accounts get their
    /// default account.
    pub async fn end_step(&mut self, report: &mut MovingReport) -> Result<(), CommandFailure> {
        self.flush(report).await?;
        self.settle_defaults(report).await
    }

    /// The tenant here that a row belongs to.
    pub(super) fn tenant_of(&self, named: Option<&str>) -> String {
        let named = named.unwrap_or(&self.home);
        let renamed = self.renamed.iter().find(|(old, _)| old == named);
        renamed.map_or(named, |(_, new)| new).to_owned()
    }

    /// The tenant as the server shows it; null if it does not exist.
    pub(super) async fn tenant(&mut self, id: &str) -> Result<Value, CommandFailure> {
        if let Some(known) = self.tenants.get(id) {
            return Ok(known.clone());
        }
        let found = self.find(None, &["v1", "tenants", id]).await?.unwrap_or(Value::Null);
        self.tenants.insert(id.to_owned(), found.clone());
        Ok(found)
    }

    /// Checks that the tenant exists, or would exist by now, and reports a fault otherwise.
    pub(super) async fn expect_tenant(
        &mut self,
        place: &RowLocation,
        tenant: &str,
        report: &mut MovingReport,
    ) -> Result<bool, CommandFailure> {
        if !self.tenant(tenant).await?.is_null() || self.planned_tenants.contains(tenant) {
            return Ok(true);
        }
        let field = if self.system == ReferenceSystem::Pipeline { "companyId" } else { "tenant_id" };
        let message = format!(
            "there is no tenant `{tenant}` here: create it with `postway tenants create`, or name another with --tenant-of {tenant}=TENANT"
        );
        report.wrong.push(RowFault::new(place, field, message));
        Ok(false)
    }

    /// The tenant to try rows in: their own, or the default tenant while their own does not exist.
    pub(super) fn trial_tenant<'t>(&'t self, tenant: &'t str) -> &'t str {
        let is_there = self.tenants.get(tenant).is_some_and(|tenant| !tenant.is_null());
        if is_there { tenant } else { &self.home }
    }

    /// Creates something, or only has it checked.
    pub(super) async fn make(
        &mut self,
        tenant: Option<&str>,
        path: &[&str],
        row: &CarriedRow,
    ) -> Result<Result<Value, Vec<RowFault>>, CommandFailure> {
        let query = match self.mode {
            MovingMode::Rehearse => vec![("dry_run", "true".to_owned())],
            MovingMode::Import => Vec::new(),
        };
        let body = Value::Object(row.body.clone());
        let answer = self.ask(tenant, Method::POST, path, &query, RequestBody::Json(&body)).await?;
        if answer.status.is_success() {
            return Ok(Ok(answer.body));
        }
        Ok(Err(self.refused(&row.place, row.kind, row.form, &answer)?))
    }

    /// Reads something from the server; `None` if it does not exist.
    pub(super) async fn find(
        &mut self,
        tenant: Option<&str>,
        path: &[&str],
    ) -> Result<Option<Value>, CommandFailure> {
        // A path cannot contain these; creating something under such an id is refused with the reason.
        if path.iter().any(|step| matches!(*step, "" | "." | "..")) {
            return Ok(None);
        }
        let answer = self.ask(tenant, Method::GET, path, &[], RequestBody::Empty).await?;
        match answer.status {
            status if status.is_success() => Ok(Some(answer.body)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(answer.failure()),
        }
    }

    /// Asks the server, again while it is busy.
    pub(super) async fn ask(
        &self,
        tenant: Option<&str>,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<MovingAnswer, CommandFailure> {
        let client = tenant.map_or_else(|| self.client.clone(), |tenant| self.client.for_tenant(tenant));
        ask_with(&client, method, path, query, body).await
    }

    /// What the server finds wrong with a row. What is wrong with the call itself ends everything.
    pub(super) fn refused(
        &self,
        place: &RowLocation,
        kind: CarriedKind,
        form: RowFormat,
        answer: &MovingAnswer,
    ) -> Result<Vec<RowFault>, CommandFailure> {
        let status = answer.status;
        if !status.is_client_error() || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(answer.failure());
        }
        Ok(self.faults(place, kind, form, &answer.body["error"]))
    }

    /// The faults of one row, with the field names of the old system.
    pub(super) fn faults(
        &self,
        place: &RowLocation,
        kind: CarriedKind,
        form: RowFormat,
        error: &Value,
    ) -> Vec<RowFault> {
        let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if details.is_empty() {
            return vec![RowFault::new(place, "", text(error, "message"))];
        }
        let fault = |detail: &Value| {
            let field = text(detail, "field");
            let field = match form {
                RowFormat::Theirs => foreign_field_name(self.door(), old_kind(kind), &field),
                RowFormat::Ours => field,
            };
            RowFault::new(place, field, text(detail, "message"))
        };
        details.iter().map(fault).collect()
    }

    /// The compatibility API whose field names the rows use.
    fn door(&self) -> CompatApi {
        match self.system {
            ReferenceSystem::Outbox => CompatApi::Outbox,
            ReferenceSystem::Pipeline => CompatApi::Pipeline,
            ReferenceSystem::Proxy | ReferenceSystem::Monitor | ReferenceSystem::Tokens => CompatApi::Proxy,
        }
    }
}

impl MovingAnswer {
    /// The answer as the reason to stop.
    pub(super) fn failure(&self) -> CommandFailure {
        refusal(self.status, self.body.to_string().as_bytes())
    }
}

/// Asks as this client, again while the server is busy.
pub(super) async fn ask_with(
    client: &ApiClient,
    method: Method,
    path: &[&str],
    query: &[(&str, String)],
    body: RequestBody<'_>,
) -> Result<MovingAnswer, CommandFailure> {
    let bytes = match body {
        RequestBody::Json(value) => Some((value, Vec::new())),
        RequestBody::Mail(bytes) => Some((&Value::Null, bytes)),
        RequestBody::Empty => None,
    };
    for tries in 1.. {
        let body = match &bytes {
            None => RequestBody::Empty,
            Some((Value::Null, bytes)) => RequestBody::Mail(bytes.clone()),
            Some((value, _)) => RequestBody::Json(value),
        };
        let (status, bytes) = client.answer(method.clone(), path, query, body).await?;
        let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if !is_busy || tries == BUSY_TRIES_MAX {
            return Ok(MovingAnswer { status, body: serde_json::from_slice(&bytes).unwrap_or_default() });
        }
        tokio::time::sleep(BUSY_WAIT).await;
    }
    unreachable!("the tries end")
}

fn old_kind(kind: CarriedKind) -> ForeignRowKind {
    match kind {
        CarriedKind::Tenant | CarriedKind::TenantSuspension => ForeignRowKind::Tenant,
        CarriedKind::Account => ForeignRowKind::Account,
        CarriedKind::BatchSuspension
        | CarriedKind::Suppression
        | CarriedKind::Recipient
        | CarriedKind::Mailbox
        | CarriedKind::Message
        | CarriedKind::Token => ForeignRowKind::Message,
    }
}

fn faults<'a>(place: &'a RowLocation, wrong: &'a [FieldError]) -> impl Iterator<Item = RowFault> + 'a {
    wrong.iter().map(move |fault| RowFault::new(place, &fault.field, &fault.message))
}

/// A text of a body.
pub(super) fn text<'a>(body: &'a Map<String, Value>, name: &str) -> &'a str {
    body.get(name).and_then(Value::as_str).unwrap_or_default()
}
