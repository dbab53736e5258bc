//! Writes a server's settings as files that `apply` reads. The API's own description says which fields can be
//! set; the others, and secrets, are left out. A secret that is set becomes a reference to a variable.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::{
    folder::{ENDING, TENANT_FILE},
    kind::ResourceKind,
    plan::{list, list_at},
};
use crate::cli::{client::ApiClient, failure::CommandFailure};

/// What was written.
pub struct ExportedFiles {
    /// The number of files.
    pub files: usize,
    /// The variables that references name.
    pub secrets: Vec<String>,
    /// What has no file, because nothing would tell it from others when the folder is applied.
    pub left_out: Vec<String>,
}

/// Writes the settings of every tenant, or of one.
pub async fn write(
    client: &ApiClient,
    folder: &Path,
    only: Option<&str>,
) -> Result<ExportedFiles, CommandFailure> {
    let schemas = client.get(&["openapi.json"], &[]).await?["components"]["schemas"].clone();
    let mut export = FileExport::new(folder, schemas);
    let tenants = list_at(client, &["v1", "tenants"]).await?;
    for tenant in &tenants {
        let Some(id) = tenant["id"].as_str().filter(|id| only.is_none_or(|only| only == *id)) else {
            continue;
        };
        let client = client.for_tenant(id);
        export.write_file(
            &Path::new(id).join(TENANT_FILE),
            "TenantRequest",
            tenant,
            &format!("{id}_TENANT"),
        )?;
        for kind in ResourceKind::ALL {
            for shown in list(&client, kind, id).await? {
                if !kind.is_passed_over(&shown) {
                    export.write_thing(&client, kind, id, &shown).await?;
                }
            }
        }
    }
    let FileExport { written, secrets, left_out, .. } = export;
    Ok(ExportedFiles { files: written.len(), secrets, left_out })
}

struct FileExport {
    folder: PathBuf,
    schemas: Value,
    written: BTreeSet<PathBuf>,
    /// Tenants, kinds and identities of what has a file.
    identities: BTreeSet<String>,
    secrets: Vec<String>,
    left_out: Vec<String>,
}

impl FileExport {
    fn new(folder: &Path, schemas: Value) -> Self {
        Self {
            folder: folder.to_owned(),
            schemas,
            written: BTreeSet::new(),
            identities: BTreeSet::new(),
            secrets: Vec::new(),
            left_out: Vec::new(),
        }
    }

    async fn write_thing(
        &mut self,
        client: &ApiClient,
        kind: ResourceKind,
        tenant: &str,
        shown: &Value,
    ) -> Result<(), CommandFailure> {
        let whole = match kind {
            ResourceKind::Templates => {
                let path = kind.path_of(tenant, shown);
                client.get(&path.iter().map(String::as_str).collect::<Vec<_>>(), &[]).await?
            }
            _ => kind.without_findings(shown.clone()),
        };
        let identity = whole[kind.identity()].as_str().unwrap_or_default();
        // Keys and webhooks have ids of their own: several may have one name or URL, and a key may have none.
        let is_first = self.identities.insert(format!("{tenant}/{}/{identity}", kind.word()));
        if identity.is_empty() || !is_first {
            let id = whole["id"].as_str().unwrap_or_default();
            self.left_out.push(format!("{tenant}/{}/{id} ({} {identity:?})", kind.word(), kind.identity()));
            return Ok(());
        }
        let name = match kind {
            ResourceKind::Webhooks => whole["id"].as_str(),
            _ => Some(identity),
        };
        let (name, path) = self.free_path(&Path::new(tenant).join(kind.word()), name.unwrap_or_default());
        let prefix = format!("{tenant}_{}_{name}", kind.word());
        self.write_file(&path, kind.schema(), &whole, &prefix)
    }

    /// A name and its file that nothing else was written to.
    fn free_path(&self, folder: &Path, name: &str) -> (String, PathBuf) {
        let name = file_name(name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let named = std::iter::once(name.clone()).chain(numbered);
        let mut paths = named.map(|name| (folder.join(format!("{name}{ENDING}")), name));
        let free = paths.find(|(path, _)| !self.written.contains(path));
        let (path, name) = free.expect("there is always another number");
        (name, path)
    }

    fn write_file(
        &mut self,
        path: &Path,
        schema: &str,
        shown: &Value,
        prefix: &str,
    ) -> Result<(), CommandFailure> {
        let settable = &self.schemas[schema]["properties"];
        let mut fields = Map::new();
        for (name, value) in shown.as_object().into_iter().flatten() {
            let is_settable = settable.get(name).is_some_and(|field| field["readOnly"] != true);
            let is_secret = name.strip_suffix("_set").is_some_and(|secret| settable.get(secret).is_some());
            if (is_settable && name != "version" && name != "retention_days") || is_secret {
                fields.insert(name.clone(), value.clone());
            }
        }
        let fields = self.settable(&fields, prefix);
        let text = toml::to_string_pretty(&fields).context("settings cannot be written as TOML");
        let (file, text) = (self.folder.join(path), text.map_err(CommandFailure::Failed)?);
        let written = || -> std::io::Result<()> {
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&file, text)
        };
        written()
            .with_context(|| format!("cannot write {}", file.display()))
            .map_err(CommandFailure::Failed)?;
        self.written.insert(path.to_owned());
        Ok(())
    }

    /// The fields without what is absent or shown only, and with references in place of secrets.
    fn settable(&mut self, fields: &Map<String, Value>, prefix: &str) -> Map<String, Value> {
        let mut kept = Map::new();
        for (name, value) in fields {
            match value {
                Value::Null => {}
                Value::Bool(is_set) if name.ends_with("_set") => {
                    if *is_set {
                        self.refer(&mut kept, name.trim_end_matches("_set"), prefix);
                    }
                }
                Value::Bool(has_secret) if name == "has_secret" => {
                    let secret =
                        if fields.get("type") == Some(&Value::from("basic")) { "password" } else { "token" };
                    if *has_secret {
                        self.refer(&mut kept, secret, prefix);
                    }
                }
                Value::Object(inner) => {
                    let inner = self.settable(inner, &format!("{prefix}_{name}"));
                    if !inner.is_empty() {
                        kept.insert(name.clone(), Value::Object(inner));
                    }
                }
                other => {
                    kept.insert(name.clone(), without_nulls(other));
                }
            }
        }
        kept
    }

    fn refer(&mut self, kept: &mut Map<String, Value>, secret: &str, prefix: &str) {
        let variable: String = format!("POSTWAY_SECRET_{prefix}_{secret}")
            .chars()
            .map(
                |character| {
                    if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }
                },
            )
            .collect();
        kept.insert(format!("{secret}_env"), Value::String(variable.clone()));
        self.secrets.push(variable);
    }
}

/// TOML has no null: in lists of objects such fields are left out.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            items.iter().filter(|item| !item.is_null()).map(without_nulls).collect::<Vec<_>>().into()
        }
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

/// A name that is one file in its folder, whatever it contains.
fn file_name(name: &str) -> String {
    let safe = |character: char| {
        if character.is_alphanumeric() || "-_.@ ".contains(character) { character } else { '_' }
    };
    let name: String = name.chars().map(safe).take(100).collect();
    let name = name.trim_start_matches('.').to_owned();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_become_references_and_what_is_shown_only_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let schemas = json!({"AccountRequest": {"properties": {
            "id": {}, "host": {}, "password": {}, "version": {}, "limits": {}, "used": {"readOnly": true},
            "api_key": {},
        }}});
        let mut export = FileExport::new(folder.path(), schemas);
        let shown = json!({
            "id": "relay-1", "host": "smtp.example.com", "password_set": true, "api_key_set": false, "version": 4,
            "limits": {"per_day": 5, "behavior": null}, "used": {"day": 1}, "circuit": {"state": "open"},
        });
        export
            .write_file(
                Path::new("acme/accounts/relay-1.toml"),
                "AccountRequest",
                &shown,
                "acme_accounts_relay-1",
            )
            .unwrap();
        let text = fs::read_to_string(folder.path().join("acme/accounts/relay-1.toml")).unwrap();
        let read: Map<String, Value> = toml::from_str(&text).unwrap();
        let expected = json!({
            "id": "relay-1", "host": "smtp.example.com", "limits": {"per_day": 5},
            "password_env": "POSTWAY_SECRET_ACME_ACCOUNTS_RELAY_1_PASSWORD",
        });
        assert_eq!(Value::Object(read), expected, "{text}");
        assert_eq!(export.secrets, ["POSTWAY_SECRET_ACME_ACCOUNTS_RELAY_1_PASSWORD"]);
    }

    #[test]
    fn every_name_is_a_file_of_its_own_folder() {
        for (name, file) in [
            ("relay-1", "relay-1"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("", "unnamed"),
            ("a/b", "a_b"),
            ("..", "unnamed"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }
}
