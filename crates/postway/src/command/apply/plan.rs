//! What applying a folder would do, found out before the first change.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    compare::{FieldDifference, differences},
    folder::{SettingsFolder, TenantFolder, WantedThing},
    kind::ResourceKind,
    reference::ResolvedFields,
};
use crate::cli::{client::ApiClient, failure::CommandFailure};

/// The most things of a page.
const PAGE: usize = 200;

/// The steps, in the order in which they are taken.
pub struct ApplyPlan {
    /// The steps.
    pub steps: Vec<PlannedStep>,
}

/// One step.
pub struct PlannedStep {
    /// The tenant.
    pub tenant: String,
    /// The kind; none for the tenant itself.
    pub kind: Option<ResourceKind>,
    /// What makes the thing itself.
    pub identity: String,
    /// What is done.
    pub deed: StepDeed,
}

/// What is done to a thing.
pub enum StepDeed {
    /// It is created with this body.
    Create {
        /// What is sent.
        body: Map<String, Value>,
        /// Where to write what is shown once.
        shown_once_file: Option<std::path::PathBuf>,
    },
    /// It is changed.
    Change {
        /// As the server shows it.
        shown: Value,
        /// What is sent.
        body: Map<String, Value>,
        /// The fields that differ.
        differences: Vec<FieldDifference>,
        /// The secrets that are sent.
        secrets: Vec<String>,
    },
    /// It is as the file wants it.
    Keep,
    /// It is deleted.
    Delete {
        /// As the server shows it.
        shown: Value,
    },
}

impl PlannedStep {
    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        !matches!(self.deed, StepDeed::Keep)
    }

    fn name(&self) -> String {
        match self.kind {
            Some(kind) => format!("{}/{}/{}", self.tenant, kind.word(), self.identity),
            None => self.tenant.clone(),
        }
    }

    /// For people: a sign and a name, and below it what changes.
    pub fn render(&self) -> String {
        let name = self.name();
        match &self.deed {
            StepDeed::Create { .. } => format!("+ {name}"),
            StepDeed::Delete { .. } => format!("- {name}"),
            StepDeed::Keep => format!("  {name}"),
            StepDeed::Change { differences, secrets, .. } => {
                let changed = differences.iter().map(FieldDifference::render);
                let sent = secrets.iter().map(|secret| format!("{secret}: (secret)"));
                let lines: Vec<String> = changed.chain(sent).map(|line| format!("\n    {line}")).collect();
                format!("~ {name}{}", lines.concat())
            }
        }
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let (deed, changed) = match &self.deed {
            StepDeed::Create { .. } => ("create", Vec::new()),
            StepDeed::Delete { .. } => ("delete", Vec::new()),
            StepDeed::Keep => ("keep", Vec::new()),
            StepDeed::Change { differences, secrets, .. } => {
                let fields = differences.iter().map(|one| one.field.clone());
                ("change", fields.chain(secrets.iter().cloned()).collect())
            }
        };
        json!({"what": self.name(), "deed": deed, "fields": changed})
    }
}

impl ApplyPlan {
    /// Compares the folder with the server. `deleted` are the kinds of which everything else is deleted.
    pub async fn make(
        client: &ApiClient,
        folder: &SettingsFolder,
        deleted: &[ResourceKind],
        sends_secrets: bool,
    ) -> Result<Self, CommandFailure> {
        let mut steps = Vec::new();
        for (tenant, wanted) in &folder.tenants {
            let client = client.for_tenant(tenant);
            steps.extend(plan_tenant(&client, tenant, wanted, deleted, sends_secrets).await?);
        }
        Ok(Self { steps })
    }
}

async fn plan_tenant(
    client: &ApiClient,
    tenant: &str,
    wanted: &TenantFolder,
    deleted: &[ResourceKind],
    sends_secrets: bool,
) -> Result<Vec<PlannedStep>, CommandFailure> {
    let found = match client.get(&["v1", "tenants", tenant], &[]).await {
        Ok(found) => Some(found),
        Err(CommandFailure::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let mut settings = wanted.settings.clone().unwrap_or_default();
    let default_account = settings.take("default_account");
    let step = |kind, identity: &str, deed| PlannedStep {
        tenant: tenant.to_owned(),
        kind,
        identity: identity.to_owned(),
        deed,
    };
    let mut steps = Vec::new();
    match &found {
        None => {
            settings.set("id", json!(tenant));
            let body = settings.body(true);
            steps.push(step(None, tenant, StepDeed::Create { body, shown_once_file: None }));
        }
        Some(shown) => steps.push(step(None, tenant, changed(None, &settings, shown, sends_secrets))),
    }
    let mut existing = BTreeMap::new();
    if found.is_some() {
        for kind in ResourceKind::ALL {
            let is_wanted = wanted.things.iter().any(|thing| thing.kind == kind);
            if is_wanted || deleted.contains(&kind) {
                existing.insert(kind, list(client, kind, tenant).await?);
            }
        }
    }
    for thing in &wanted.things {
        let shown = existing.get(&thing.kind).and_then(|found| found_in(found, thing));
        steps.push(step(
            Some(thing.kind),
            &thing.identity,
            plan_thing(client, tenant, thing, shown, sends_secrets).await?,
        ));
    }
    if let Some(account) = default_account {
        let mut fields = ResolvedFields::default();
        fields.set("default_account", account);
        let shown = found.unwrap_or_else(|| json!({}));
        let deed = changed(None, &fields, &shown, false);
        // Its version rises with the steps before.
        if let StepDeed::Change { differences, body, secrets, .. } = deed {
            let shown = Value::Null;
            steps.push(step(None, tenant, StepDeed::Change { shown, body, differences, secrets }));
        }
    }
    for kind in ResourceKind::ALL.into_iter().rev().filter(|kind| deleted.contains(kind)) {
        for shown in existing.get(&kind).into_iter().flatten().filter(|shown| !kind.is_passed_over(shown)) {
            let is_wanted = wanted.things.iter().any(|thing| thing.kind == kind && is_it(thing, shown));
            if is_wanted {
                continue;
            }
            let identity = shown[kind.identity()].as_str().unwrap_or_default().to_owned();
            refuse_own_key(client, kind, tenant, shown)?;
            steps.push(step(Some(kind), &identity, StepDeed::Delete { shown: shown.clone() }));
        }
    }
    Ok(steps)
}

/// The key that this command runs with is its own way in.
fn refuse_own_key(
    client: &ApiClient,
    kind: ResourceKind,
    tenant: &str,
    shown: &Value,
) -> Result<(), CommandFailure> {
    let id = shown["id"].as_str().unwrap_or_default();
    match kind == ResourceKind::Keys && client.has_key_of(id) {
        true => Err(CommandFailure::Usage(format!(
            "--delete keys would revoke the key of {tenant} that this command runs with: add it to the folder, or \
             use another one; nothing was changed"
        ))),
        false => Ok(()),
    }
}

async fn plan_thing(
    client: &ApiClient,
    tenant: &str,
    thing: &WantedThing,
    shown: Option<&Value>,
    sends_secrets: bool,
) -> Result<StepDeed, CommandFailure> {
    let Some(shown) = shown else {
        let shown_once_file = thing.shown_once_file.clone();
        return Ok(StepDeed::Create { body: thing.fields.body(true), shown_once_file });
    };
    // The list shows templates without their content.
    let whole = match thing.kind {
        ResourceKind::Templates => {
            let path = thing.kind.path_of(tenant, shown);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            client.get(&path, &[]).await?
        }
        _ => shown.clone(),
    };
    let deed = changed(Some(thing.kind), &thing.fields, &whole, sends_secrets);
    match (&deed, thing.kind) {
        (StepDeed::Change { differences, .. }, ResourceKind::Keys) => {
            let fields: Vec<&str> = differences.iter().map(|one| one.field.as_str()).collect();
            Err(CommandFailure::Usage(format!(
                "{tenant}/keys/{}: a key cannot be changed, and {} differs: give the file another name for a new key; \
                 nothing was changed",
                thing.identity,
                fields.join(", ")
            )))
        }
        _ => Ok(deed),
    }
}

/// Whether, and how, a thing must be changed.
fn changed(
    kind: Option<ResourceKind>,
    fields: &ResolvedFields,
    shown: &Value,
    sends_secrets: bool,
) -> StepDeed {
    let nothing = Map::new();
    let found = differences(&fields.plain, shown.as_object().unwrap_or(&nothing));
    let is_secret_due = sends_secrets && !fields.secrets.is_empty();
    if found.is_empty() && !is_secret_due {
        return StepDeed::Keep;
    }
    // A change may lead somewhere else, and then the server wants the secret again.
    let secrets = fields.secrets.clone();
    let mut body = fields.body(true);
    if let (Some(kind), Some(_)) = (kind, shown.get("version"))
        && kind != ResourceKind::Templates
    {
        body.remove("id");
    }
    StepDeed::Change { shown: shown.clone(), body, differences: found, secrets }
}

fn found_in<'v>(found: &'v [Value], thing: &WantedThing) -> Option<&'v Value> {
    found.iter().filter(|shown| !is_revoked(thing.kind, shown)).find(|shown| is_it(thing, shown))
}

fn is_revoked(kind: ResourceKind, shown: &Value) -> bool {
    kind == ResourceKind::Keys && kind.is_passed_over(shown)
}

fn is_it(thing: &WantedThing, shown: &Value) -> bool {
    shown[thing.kind.identity()] == thing.identity.as_str()
}

/// All things of a kind that a tenant has.
pub async fn list(
    client: &ApiClient,
    kind: ResourceKind,
    tenant: &str,
) -> Result<Vec<Value>, CommandFailure> {
    let path = kind.list_path(tenant);
    list_at(client, &path.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Every page of a list.
pub async fn list_at(client: &ApiClient, path: &[&str]) -> Result<Vec<Value>, CommandFailure> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page = client.get(path, &query).await?;
        found.extend(page["data"].as_array().cloned().unwrap_or_default());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(found);
        }
    }
}
