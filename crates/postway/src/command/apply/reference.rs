//! References to secrets: `password_file = "…"` names a file that contains the password, `password_env = "…"` a
//! variable. A file's path is relative to the file that names it.
//!
//! TOML has no null. `unset = ["fallback", "limits.per_day"]` names the fields to remove.

use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::cli::{failure::CommandFailure, input::read_input};

const FILE: &str = "_file";
const VARIABLE: &str = "_env";
const UNSET: &str = "unset";

/// The fields of a file, with and without what its references lead to.
#[derive(Clone, Default)]
pub struct ResolvedFields {
    /// Without secrets: what may be compared and shown.
    pub plain: Map<String, Value>,
    /// With secrets: what is sent.
    whole: Map<String, Value>,
    /// The names of the secrets.
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for ResolvedFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResolvedFields")
            .field("plain", &self.plain)
            .field("secrets", &self.secrets)
            .finish_non_exhaustive()
    }
}

impl ResolvedFields {
    /// Follows the references in the fields of a file in `folder`, and adds what it unsets.
    pub fn read(
        fields: &Map<String, Value>,
        folder: &Path,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CommandFailure> {
        let mut fields = fields.clone();
        let unset = fields.remove(UNSET);
        let mut resolved = Self::follow_all(&fields, folder, variable)?;
        for name in names_unset(unset)? {
            for fields in [&mut resolved.plain, &mut resolved.whole] {
                remove_field(fields, &name)
                    .ok_or_else(|| CommandFailure::Usage(format!("{name} is both given and unset")))?;
            }
        }
        Ok(resolved)
    }

    fn follow_all(
        fields: &Map<String, Value>,
        folder: &Path,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CommandFailure> {
        let mut resolved = Self::default();
        for (name, value) in fields {
            if let Some((secret, text)) = follow(name, value, folder, variable)? {
                let text = Value::String(text.expose_secret().to_owned());
                resolved.whole.insert(secret.to_owned(), text);
                resolved.secrets.push(secret.to_owned());
                continue;
            }
            match value {
                Value::Object(inner) => {
                    let inner = Self::follow_all(inner, folder, variable)?;
                    resolved.secrets.extend(inner.secrets.iter().map(|secret| format!("{name}.{secret}")));
                    resolved.plain.insert(name.clone(), Value::Object(inner.plain));
                    resolved.whole.insert(name.clone(), Value::Object(inner.whole));
                }
                other => {
                    resolved.plain.insert(name.clone(), other.clone());
                    resolved.whole.insert(name.clone(), other.clone());
                }
            }
        }
        Ok(resolved)
    }

    /// What is sent: all of it, with the secrets or without.
    pub fn body(&self, with_secrets: bool) -> Map<String, Value> {
        if with_secrets { self.whole.clone() } else { self.plain.clone() }
    }

    /// Adds a field that is no secret.
    pub fn set(&mut self, name: &str, value: Value) {
        self.plain.insert(name.to_owned(), value.clone());
        self.whole.insert(name.to_owned(), value);
    }

    /// Removes a field that is no secret.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.whole.remove(name);
        self.plain.remove(name)
    }
}

/// The fields to remove.
fn names_unset(unset: Option<Value>) -> Result<Vec<String>, CommandFailure> {
    let Some(unset) = unset else { return Ok(Vec::new()) };
    serde_json::from_value(unset)
        .map_err(|_| CommandFailure::Usage(format!("{UNSET} must be a list of names, like [\"fallback\"]")))
}

/// Sets the field at this path to null; `None` if it, or what it would be in, is given otherwise.
fn remove_field(fields: &mut Map<String, Value>, path: &str) -> Option<()> {
    match path.split_once('.') {
        Some((outer, inner)) => {
            let outer = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            remove_field(outer.as_object_mut()?, inner)
        }
        None if fields.contains_key(path) => None,
        None => {
            fields.insert(path.to_owned(), Value::Null);
            Some(())
        }
    }
}

/// The name and the text of a secret, if this field is a reference to one.
fn follow<'n>(
    name: &'n str,
    value: &Value,
    folder: &Path,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<(&'n str, SecretString)>, CommandFailure> {
    let Value::String(text) = value else { return Ok(None) };
    if let Some(secret) = name.strip_suffix(FILE) {
        let bytes = read_input(&folder.join(text))?;
        let read = String::from_utf8(bytes)
            .map_err(|_| CommandFailure::Usage(format!("{name}: {text} is not text in UTF-8")))?;
        return Ok(Some((secret, SecretString::from(read.trim_end_matches(['\r', '\n']).to_owned()))));
    }
    if let Some(secret) = name.strip_suffix(VARIABLE) {
        let found = variable(text)
            .ok_or_else(|| CommandFailure::Usage(format!("{name}: the variable {text} is not set")))?;
        return Ok(Some((secret, SecretString::from(found))));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_files_and_variables_and_are_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pw.txt"), "from a file\n").unwrap();
        let fields = json!({
            "host": "smtp.example.com", "password_file": "pw.txt",
            "client_sync": {"url": "https://x.example", "auth": {"type": "bearer", "token_env": "TOKEN"}},
        });
        let variable = |name: &str| (name == "TOKEN").then(|| "from a variable".to_owned());
        let read = ResolvedFields::read(fields.as_object().unwrap(), folder.path(), &variable).unwrap();
        assert_eq!(read.secrets, ["password", "client_sync.auth.token"]);
        let whole = Value::Object(read.body(true));
        assert_eq!(
            (&whole["password"], &whole["client_sync"]["auth"]["token"]),
            (&json!("from a file"), &json!("from a variable"))
        );
        let plain = Value::Object(read.body(false)).to_string();
        assert!(!plain.contains("from a") && !format!("{read:?}").contains("from a"), "{plain} {read:?}");
        for missing in [json!({"password_env": "NONE"}), json!({"password_file": "none.txt"})] {
            let fields = missing.as_object().unwrap();
            let error = ResolvedFields::read(fields, folder.path(), &variable).unwrap_err();
            assert!(matches!(error, CommandFailure::Usage(_)), "{error}");
        }
    }
}
