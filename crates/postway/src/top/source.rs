//! Asking the server: the overview each time, accounts' limits and tenants' backlogs now and then.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};

/// How long one answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How old limits and backlogs may be; they cost a call for each account and tenant.
const SLOW_EVERY: Duration = Duration::from_secs(10);
/// Accounts with limits that are asked about.
const ACCOUNTS_MAX: usize = 20;
/// Tenants that are asked about.
const TENANTS_MAX: usize = 50;
/// Calls at once.
const TOGETHER: usize = 4;

/// The server's answers at one moment.
#[derive(Clone, Debug, Default)]
pub struct ServerSnapshot {
    /// `GET /v1/overview`.
    pub overview: Value,
    /// Accounts that are suspended or have limits, as `GET /v1/accounts/{id}` shows them.
    pub accounts: Vec<Value>,
    /// Tenants with mail that waits, the most first: `tenant`, `waiting`, `oldest_due_seconds`. Empty for a
    /// tenant's own key.
    pub tenants: Vec<Value>,
}

impl ServerSnapshot {
    /// The overview, with `accounts` and `tenants` beside it.
    pub fn json(&self) -> Value {
        let mut value = self.overview.clone();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("accounts".to_owned(), json!(self.accounts));
            fields.insert("tenants".to_owned(), json!(self.tenants));
        }
        value
    }
}

/// Asks one server again and again.
#[derive(Debug)]
pub struct SnapshotSource {
    client: ApiClient,
    slow: Option<(Instant, Vec<Value>, Vec<Value>)>,
}

impl SnapshotSource {
    /// Asks through this client.
    pub fn new(client: ApiClient) -> Self {
        Self { client, slow: None }
    }

    /// Asks the server.
    pub async fn ask(&mut self) -> Result<ServerSnapshot, CommandFailure> {
        match timeout(ANSWER_MAX, self.gather()).await {
            Ok(news) => news,
            Err(_) => Err(CommandFailure::Unreachable {
                url: self.client.base().to_string(),
                reason: "it did not answer in time".to_owned(),
            }),
        }
    }

    async fn gather(&mut self) -> Result<ServerSnapshot, CommandFailure> {
        let overview = self.client.get(&["v1", "overview"], &[]).await?;
        if self.slow.as_ref().is_none_or(|(asked_at, ..)| asked_at.elapsed() >= SLOW_EVERY) {
            // A tenant's own key sees no nodes, and no other tenants either.
            let is_admin = !list(&overview, "nodes").is_empty();
            let tenants = if is_admin { self.backlogs().await? } else { Vec::new() };
            self.slow = Some((Instant::now(), self.accounts().await?, tenants));
        }
        let (accounts, tenants) = self
            .slow
            .as_ref()
            .map(|(_, accounts, tenants)| (accounts.clone(), tenants.clone()))
            .unwrap_or_default();
        Ok(ServerSnapshot { overview, accounts, tenants })
    }

    async fn accounts(&self) -> Result<Vec<Value>, CommandFailure> {
        let all = self.client.get(&["v1", "accounts"], &[]).await?;
        let shown =
            list(&all, "data").iter().filter(|account| is_limited(account) || account["suspended"] == true);
        let ids: Vec<String> = shown.take(ACCOUNTS_MAX).map(|account| field(account, "id")).collect();
        let asked =
            stream::iter(&ids).map(async |id| match self.client.get(&["v1", "accounts", id], &[]).await {
                // Deleted in between.
                Err(CommandFailure::NotFound(_)) => Ok(None),
                answer => answer.map(Some),
            });
        let answers: Vec<Result<Option<Value>, CommandFailure>> = asked.buffered(TOGETHER).collect().await;
        answers.into_iter().filter_map(Result::transpose).collect()
    }

    async fn backlogs(&self) -> Result<Vec<Value>, CommandFailure> {
        let limit = [("limit", TENANTS_MAX.to_string())];
        let all = self.client.get(&["v1", "tenants"], &limit).await?;
        let ids: Vec<String> = list(&all, "data").iter().map(|tenant| field(tenant, "id")).collect();
        if ids.len() < 2 {
            return Ok(Vec::new());
        }
        let asked = stream::iter(&ids).map(async |id| {
            let stats = self.client.for_tenant(id).get(&["v1", "stats"], &[]).await?;
            Ok::<_, CommandFailure>(json!({
                "tenant": id,
                "waiting": waiting(&stats),
                "oldest_due_seconds": stats["oldest_due_seconds"],
            }))
        });
        let answers: Vec<Result<Value, CommandFailure>> = asked.buffered(TOGETHER).collect().await;
        let mut backlogs = Vec::new();
        for answer in answers {
            match answer {
                Ok(backlog) if backlog["waiting"] != 0 => backlogs.push(backlog),
                // Nothing waits, or the tenant was deleted in between.
                Ok(_) | Err(CommandFailure::NotFound(_) | CommandFailure::Refused(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        backlogs.sort_by_key(|backlog| std::cmp::Reverse(backlog["waiting"].as_i64()));
        Ok(backlogs)
    }
}

fn is_limited(account: &Value) -> bool {
    ["per_minute", "per_hour", "per_day"].iter().any(|name| account["limits"][name].as_u64().unwrap_or(0) > 0)
        || !account["warm_up"].is_null()
}

/// Messages that have not ended.
fn waiting(stats: &Value) -> i64 {
    let states = ["accepted", "validating", "ready", "scheduled", "sending", "in_doubt"];
    states.iter().filter_map(|state| stats["by_status"][state].as_i64()).sum()
}
