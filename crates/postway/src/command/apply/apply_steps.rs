//! Takes the steps of a plan, one after the other. A step that fails ends the run; what was done stays, and the
//! folder can be applied again.

use std::{io::Write as _, path::Path};

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Map, Value};

use super::{
    kind::ResourceKind,
    plan::{ApplyPlan, PlannedStep, StepDeed},
};
use crate::cli::{
    client::{ApiClient, RequestBody},
    failure::CommandFailure,
};

/// Takes every step that changes something.
pub async fn run(client: &ApiClient, plan: &ApplyPlan) -> Result<(), CommandFailure> {
    for step in &plan.steps {
        take(&client.for_tenant(&step.tenant), step).await.map_err(|error| during(step, error))?;
    }
    Ok(())
}

/// The same failure with the step that it happened in.
fn during(step: &PlannedStep, error: CommandFailure) -> CommandFailure {
    let place = step.render();
    let place = place.lines().next().unwrap_or_default().trim_start_matches(['+', '~', '-', ' ']).to_owned();
    match error {
        CommandFailure::Refused(why) => CommandFailure::Refused(format!(
            "{place}: {why}\n  the steps before are done; apply the folder again"
        )),
        CommandFailure::NotFound(why) => CommandFailure::NotFound(format!("{place}: {why}")),
        other => other,
    }
}

async fn take(client: &ApiClient, step: &PlannedStep) -> Result<(), CommandFailure> {
    let tenant = step.tenant.as_str();
    match &step.deed {
        StepDeed::Keep => Ok(()),
        StepDeed::Create { body, shown_once_file } => {
            let path = step.kind.map_or_else(tenants, |kind| kind.list_path(tenant));
            let made = call(client, Method::POST, &path, Some(body)).await?;
            match (step.kind.and_then(ResourceKind::shown_once), shown_once_file) {
                (Some((field, _)), Some(file)) => {
                    write_secret(file, made[field].as_str().unwrap_or_default())
                }
                _ => Ok(()),
            }
        }
        StepDeed::Change { shown, body, .. } => {
            let (method, path) = match step.kind {
                None => (Method::PATCH, [tenants(), vec![tenant.to_owned()]].concat()),
                Some(ResourceKind::Templates) => {
                    (Method::PUT, ResourceKind::Templates.path_of(tenant, shown))
                }
                Some(kind) => (Method::PATCH, kind.path_of(tenant, shown)),
            };
            let mut body = body.clone();
            // The plan is for this version: what somebody else has changed since is not overwritten.
            if let Some(version) = shown.get("version").filter(|_| step.kind != Some(ResourceKind::Templates))
            {
                body.insert("version".to_owned(), version.clone());
            }
            call(client, method, &path, Some(&body)).await.map(drop)
        }
        StepDeed::Delete { shown } => {
            let Some(kind) = step.kind else { return Ok(()) };
            match call(client, Method::DELETE, &kind.path_of(tenant, shown), None).await {
                // A run before this one may have been as far.
                Ok(_) | Err(CommandFailure::NotFound(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
    }
}

fn tenants() -> Vec<String> {
    vec!["v1".to_owned(), "tenants".to_owned()]
}

async fn call(
    client: &ApiClient,
    method: Method,
    path: &[String],
    body: Option<&Map<String, Value>>,
) -> Result<Value, CommandFailure> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match body {
        None => client.call(method, &path, &[], RequestBody::Empty).await,
        Some(body) => {
            let body = Value::Object(body.clone());
            client.call(method, &path, &[], RequestBody::Json(&body)).await
        }
    }
}

/// Writes what is shown once to a file that only its owner can read.
fn write_secret(path: &Path, text: &str) -> Result<(), CommandFailure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let write = || -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{text}")?;
        file.sync_all()
    };
    let failed =
        || format!("it was created, but what is shown once could not be written to {}", path.display());
    write().with_context(failed).map_err(CommandFailure::Failed)
}
