//! The server: whether it answers, accepts our key, and can take mail; and the nodes that it knows.

use postway_domain::{Clock as _, Time};
use serde_json::Value;
use tokio::time::Instant;

use super::{CheckupFinding, CheckupState, CheckupSubject, within};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};
use crate::cluster::clock::NodeClock;

/// The most tenants that are checked.
const TENANTS_MAX: usize = 50;

/// A server that answers and takes our key.
pub struct ReachedServer {
    /// `GET /v1/overview` of the tenant that was named, or of the first.
    pub overview: Value,
    /// When it answered.
    pub glance: Option<ServerTimeSample>,
    /// A client for each tenant, with its settings if the key may see them.
    pub tenants: Vec<CheckedTenant>,
}

/// A tenant to check.
pub struct CheckedTenant {
    /// A client for it.
    pub client: ApiClient,
    /// Its id; `None` for a tenant's own key, which names its tenant by itself.
    pub id: Option<String>,
    /// Its settings, as `GET /v1/tenants` shows them; null for a tenant's own key.
    pub settings: Value,
}

/// The server's time between two of ours.
#[derive(Clone, Copy, Debug)]
pub struct ServerTimeSample {
    /// When it was asked.
    pub asked_at: Time,
    /// The server's time.
    pub at: Time,
    /// When the answer arrived.
    pub answered_at: Time,
}

impl ReachedServer {
    /// The name of something of a tenant, with the tenant's id if there are several tenants.
    pub fn name(&self, tenant: &CheckedTenant, thing: &str) -> String {
        match &tenant.id {
            Some(id) if self.tenants.len() > 1 => format!("{id}/{thing}"),
            _ => thing.to_owned(),
        }
    }
}

/// Whether there is a server to ask, and all that the other checks need of it.
pub async fn check(subject: &CheckupSubject) -> (Vec<CheckupFinding>, Option<ReachedServer>) {
    let client = match &subject.client {
        Ok(client) => client,
        Err(failure) => {
            let finding = match failure {
                CommandFailure::Config(_) => {
                    CheckupFinding::new("server", CheckupState::Skipped).found("the configuration is wrong")
                }
                other => CheckupFinding::new("server", CheckupState::Problem).found(other.to_string()),
            };
            return (vec![finding], None);
        }
    };
    let started = Instant::now();
    let mut warned = Vec::new();
    let ready = match within(client.get(&["health", "ready"], &[])).await {
        Ok(health) => {
            warned = warnings(&health);
            let found =
                format!("{} is ready, answered in {} ms", client.base(), started.elapsed().as_millis());
            CheckupFinding::new("server", CheckupState::Ok).found(found)
        }
        Err(failure) => {
            let finding = away(client, &failure);
            if matches!(failure, CommandFailure::Unreachable { .. }) {
                return (vec![finding], None);
            }
            finding
        }
    };
    let mut findings = vec![ready];
    findings.append(&mut warned);
    let clock = NodeClock::default();
    let asked_at = clock.now();
    let overview = match within(client.get(&["v1", "overview"], &[])).await {
        Ok(overview) => overview,
        Err(failure) => {
            findings.push(refused(&failure));
            return (findings, None);
        }
    };
    let answered_at = clock.now();
    let at = overview["at"].as_str().and_then(|at| at.parse().ok());
    findings.extend(version(&overview));
    let (tenants, more) = match tenants(client, subject.tenant.as_deref(), &overview).await {
        Ok(found) => found,
        Err(failure) => {
            findings.push(refused(&failure));
            return (findings, None);
        }
    };
    if more {
        let advice = "look at one of the others with --tenant";
        let found = format!("only the first {TENANTS_MAX} are looked at");
        findings.push(CheckupFinding::new("tenants", CheckupState::Skipped).found(found).advice(advice));
    }
    let glance = at.map(|at| ServerTimeSample { asked_at, at, answered_at });
    (findings, Some(ReachedServer { overview, glance, tenants }))
}

/// Warnings of the server that no other check covers.
fn warnings(health: &Value) -> Vec<CheckupFinding> {
    let is_wrong = list(health, "warnings").iter().any(|word| word == "secret_key_wrong");
    let finding = || {
        let advice = "put the key that sealed them into secret.key (POSTWAY_SECRET_KEY) or POSTWAY_SECRET_KEY_PREVIOUS and \
                      start the server again, or set the passwords anew; the server's log names them";
        CheckupFinding::new("secret key", CheckupState::Problem)
            .found("stored secrets do not open with the server's secret key")
            .advice(advice)
    };
    is_wrong.then(finding).into_iter().collect()
}

fn away(client: &ApiClient, failure: &CommandFailure) -> CheckupFinding {
    let (found, advice) = match failure {
        CommandFailure::Unreachable { reason, .. } => (
            format!("{} does not answer: {reason}", client.base()),
            "start it: `postway serve`, or `systemctl start postway`; name another with --url",
        ),
        other => {
            (other.to_string(), "it runs and cannot take mail: see the database above, and the server's log")
        }
    };
    CheckupFinding::new("server", CheckupState::Problem).found(found).advice(advice)
}

fn refused(failure: &CommandFailure) -> CheckupFinding {
    let advice = match failure {
        CommandFailure::Refused(_) => {
            "give the admin key with --key or POSTWAY_API_KEY, or run this where the server's data folder is"
        }
        CommandFailure::NotFound(_) => {
            "check --tenant (POSTWAY_TENANT); `postway tenants list` shows those there are"
        }
        _ => "see the server's log",
    };
    CheckupFinding::new("key", CheckupState::Problem).found(failure.to_string()).advice(advice)
}

/// Whether the command line and the server have the same version; only an admin key can see it.
fn version(overview: &Value) -> Option<CheckupFinding> {
    let me = list(overview, "nodes").iter().find(|node| node["is_self"] == true)?;
    let (theirs, ours) = (field(me, "version"), env!("CARGO_PKG_VERSION"));
    Some(match theirs == ours {
        true => CheckupFinding::new("version", CheckupState::Ok).found(theirs),
        false => CheckupFinding::new("version", CheckupState::Warning)
            .found(format!("the server is {theirs}, this program is {ours}"))
            .advice("use the program that the server runs"),
    })
}

/// The tenants to look at, and whether there are more.
async fn tenants(
    client: &ApiClient,
    named: Option<&str>,
    overview: &Value,
) -> Result<(Vec<CheckedTenant>, bool), CommandFailure> {
    let is_admin = !list(overview, "nodes").is_empty();
    if !is_admin {
        let client = client.clone();
        return Ok((vec![CheckedTenant { client, id: None, settings: Value::Null }], false));
    }
    let tenant = |settings: &Value| {
        let id = field(settings, "id");
        CheckedTenant { client: client.for_tenant(&id), id: Some(id), settings: settings.clone() }
    };
    if let Some(id) = named {
        let settings = within(client.get(&["v1", "tenants", id], &[])).await?;
        return Ok((vec![tenant(&settings)], false));
    }
    let limit = [("limit", TENANTS_MAX.to_string())];
    let all = within(client.get(&["v1", "tenants"], &limit)).await?;
    Ok((list(&all, "data").iter().map(tenant).collect(), !all["next_cursor"].is_null()))
}

/// The nodes that share the database.
pub fn nodes(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let nodes = list(&reached.overview, "nodes");
    if nodes.is_empty() {
        return vec![
            CheckupFinding::new("nodes", CheckupState::Skipped).found("only the admin key sees them"),
        ];
    }
    let mut findings: Vec<CheckupFinding> = nodes.iter().map(node).collect();
    let mut versions: Vec<String> = nodes.iter().map(|node| field(node, "version")).collect();
    versions.sort();
    versions.dedup();
    if versions.len() > 1 {
        let advice = "an upgrade is under way: bring the others up to the newest";
        findings.push(
            CheckupFinding::new("versions", CheckupState::Warning).found(versions.join(", ")).advice(advice),
        );
    }
    let apart = nodes.iter().filter(|node| node["storage_apart"] == true);
    let apart: Vec<String> = apart.map(|node| field(node, "name")).collect();
    if !apart.is_empty() {
        let found = format!(
            "not shared with {}: mail over 128 KiB waits for the node that took it",
            apart.join(", ")
        );
        let advice =
            "set storage.url (POSTWAY_STORAGE_URL) of all nodes to one bucket, or to a folder that all see";
        findings.push(CheckupFinding::new("storage", CheckupState::Problem).found(found).advice(advice));
    }
    findings
}

fn node(node: &Value) -> CheckupFinding {
    let (name, address, beat) = (field(node, "name"), field(node, "address"), field(node, "last_beat_at"));
    match node["status"] == "alive" {
        true => CheckupFinding::new(name, CheckupState::Ok).found(format!("{address}, heartbeat at {beat}")),
        false => {
            let advice = "its work was taken over; start it again, or leave it: it is struck from the list";
            CheckupFinding::new(name, CheckupState::Warning)
                .found(format!("{address}, dead since {beat}"))
                .advice(advice)
        }
    }
}
